"""Results of dependencies, for the intent that runs after them."""

from __future__ import annotations

import msgspec

from duetime import limits
from duetime.kernel import handover
from duetime.protocol.command import Purge
from duetime.protocol.first_argument import FirstArgument
from duetime.protocol.intent import Status, Ties, member_id
from duetime.protocol.outcome import Rejected
from duetime.protocol.reply import Refusal
from duetime.protocol.terms import AfterOn, Callback, ExpiredAction
from tests.unit.kernel.bench import Bench, deliveries, error, stream, terms

RESULT = Ties(first=FirstArgument.RESULT)
RESULTS = Ties(first=FirstArgument.RESULTS)
FAILURE = Ties(first=FirstArgument.FAILURE)
ON_END = terms(after_on=AfterOn.END)
ON_FAILURE = terms(after_on=AfterOn.FAILURE)
WITH_PARENTS = terms(Callback("http://h/", parents=True), after_on=AfterOn.END)


def payloads(applied):
    return [deliver.payload for deliver in deliveries(applied)]


def error_of(bench, id):
    rare = bench.intent(id).rare
    assert rare is not None and rare.last_error is not None
    return rare.last_error


def parents_of(applied):
    (deliver,) = deliveries(applied)
    assert deliver.parents is not None
    return msgspec.json.decode(b"{" + deliver.parents + b"}")


def test_a_result_becomes_the_first_argument():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), ties=RESULT, payload=b"[[1]]")
    assert payloads(bench.done("p", b'{"a":2}')) == [b'[[{"a":2},1]]']
    assert bench.intent("c").payload == b"[[1]]", "the payload of the caller stays as it is"


def test_a_function_without_a_result_hands_over_null():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), ties=RESULT)
    assert payloads(bench.done("p")) == [b"[[null]]"]


def test_every_attempt_gets_it_also_after_a_restart():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), ties=RESULT)
    bench.done("p", b"5")
    bench.fail("c", delay_ms=100)
    bench.save()
    again = bench.thawed()
    assert payloads(again.at(100)) == [b"[[5]]"]


def test_the_last_of_several_dependencies_counts():
    bench = Bench()
    bench.submit("p", "q")
    bench.submit("c", after=("p", "q"), ties=RESULT)
    bench.done("q", b"2")
    assert payloads(bench.done("p", b"1")) == [b"[[2]]"]


def test_all_results_in_order():
    bench = Bench()
    bench.submit("p", "q", "r")
    bench.submit("c", on=ON_END, after=("p", "q", "r"), ties=RESULTS, payload=b'[[],{"a":1}]')
    bench.done("q", b"2")
    bench.settle("r", Rejected("r", "no"))
    assert payloads(bench.done("p", b"1")) == [b'[[[1,2,null]],{"a":1}]']


def test_the_results_of_a_group():
    bench = Bench()
    bench.submit("g", ties=Ties(members=2, first=FirstArgument.RESULTS))
    for number in range(2):
        bench.submit(member_id("g", number), ties=Ties(group="g"))
    bench.done("g.1", b'"b"')
    assert payloads(bench.done("g.0", b'"a"')) == [b'[[["a","b"]]]']


def test_results_that_are_too_large_end_the_step(monkeypatch):
    monkeypatch.setattr(handover, "HANDED_BYTES_MAX", 8)
    bench = Bench()
    bench.submit("p", "q")
    bench.submit("c", after=("p", "q"), ties=RESULTS)
    bench.done("p", b"12345")
    bench.done("q", b"12345")
    assert bench.status("c") is Status.DEAD_LETTERED
    found = error_of(bench, "c")
    assert (found.kind, found.message) == (
        "too-large",
        "the results have more than 8 bytes; read them with parents()",
    )
    assert error(bench.revive("c")) == "StateForbids"


def test_the_dependency_that_failed():
    bench = Bench()
    bench.submit("p", "q")
    bench.submit("c", on=ON_FAILURE, after=("p", "q"), ties=FAILURE)
    bench.done("p")
    (payload,) = payloads(bench.settle("q", Rejected("bad", "no such file")))
    wanted = {"intentId": "q", "status": "DEAD_LETTERED", "kind": "bad", "message": "no such file"}
    assert msgspec.json.decode(payload) == [[wanted]]


def test_the_first_dependency_that_failed_if_all_have_ended():
    bench = Bench()
    bench.submit("p", "q", "r")
    bench.submit("c", on=ON_END, after=("p", "q", "r"), ties=FAILURE)
    bench.settle("r", Rejected("bad", "r"))
    bench.settle("q", Rejected("bad", "q"))
    (payload,) = payloads(bench.done("p"))
    assert msgspec.json.decode(payload)[0][0]["intentId"] == "q"


def test_a_cancelled_dependency_has_no_error():
    bench = Bench()
    bench.submit("p", delay=9)
    bench.submit("c", on=ON_FAILURE, after=("p",), ties=FAILURE)
    (payload,) = payloads(bench.cancel("p"))
    assert msgspec.json.decode(payload) == [
        [{"intentId": "p", "status": "CANCELED", "kind": "", "message": ""}]
    ]


def test_a_result_that_is_not_stored_any_more_ends_the_step():
    bench = Bench()
    bench.submit("p", on=terms(result_ttl_ms=1_000))
    bench.done("p", b"1")
    bench.at(1_000)
    bench.submit("c", after=("p",), ties=RESULT)
    found = error_of(bench, "c")
    assert (bench.status("c"), found.message) == (
        Status.DEAD_LETTERED,
        "the result of 'p' is no longer stored",
    )
    assert error(bench.revive("c")) == "StateForbids"


def test_a_dependency_that_was_purged_leaves_a_gap():
    bench = Bench()
    bench.submit("p", "q")
    bench.submit("c", on=WITH_PARENTS, after=("p", "q"))
    bench.submit("d", on=ON_END, after=("p", "q"), ties=RESULTS)
    bench.submit("e", on=ON_END, after=("q", "p"), ties=RESULT)
    bench.settle("p", Rejected("bad", "no"))
    bench.do(Purge(("p",)))
    bench.later(60_000)
    assert bench.store.get("p") is None
    applied = bench.done("q", b"2")
    assert payloads(applied)[1:] == [b"[[[null,2]]]"]
    assert b'{"intentId":"p","status":null,"result":null}' in (deliveries(applied)[0].parents or b"")
    assert bench.status("e") is Status.DEAD_LETTERED


def test_a_webhook_gets_its_parents():
    bench = Bench()
    bench.submit("p", "q")
    bench.submit("c", on=WITH_PARENTS, after=("p", "q"), payload=b"7")
    bench.settle("p", Rejected("bad", "no"))
    applied = bench.done("q", b"[2]")
    assert payloads(applied) == [b"7"]
    assert parents_of(applied) == {
        "parents": [
            {"intentId": "p", "status": "DEAD_LETTERED", "result": None},
            {"intentId": "q", "status": "ACKED", "result": [2]},
        ],
        "moreParents": False,
    }


def test_a_webhook_that_does_not_ask_gets_none():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", on=terms(Callback("http://h/")), after=("p",))
    (deliver,) = deliveries(bench.done("p", b"1"))
    assert deliver.parents is None


def test_a_webhook_gets_as_many_parents_as_fit(monkeypatch):
    monkeypatch.setattr(handover, "HANDED_BYTES_MAX", 100)
    bench = Bench()
    bench.submit("p", "q", "r")
    bench.submit("c", on=WITH_PARENTS, after=("p", "q", "r"))
    bench.done("p")
    bench.done("q")
    found = parents_of(bench.done("r"))
    assert [each["intentId"] for each in found["parents"]] == ["p", "q"] and found["moreParents"]


def test_a_webhook_gets_the_first_members_of_a_large_group(monkeypatch):
    monkeypatch.setattr(handover, "HANDED_PARENTS_MAX", 1)
    bench = Bench()
    bench.submit("g", on=WITH_PARENTS, ties=Ties(members=2))
    for number in range(2):
        bench.submit(member_id("g", number), ties=Ties(group="g"))
    bench.done("g.0", b"1")
    found = parents_of(bench.done("g.1", b"2"))
    assert [each["intentId"] for each in found["parents"]] == ["g.0"] and found["moreParents"]


def test_a_revived_step_gets_the_result_that_came_later():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), ties=RESULT, payload=b"[[1]]")
    bench.settle("p", Rejected("bad", "no"))
    assert bench.status("c") is Status.DEAD_LETTERED
    refused = bench.revive("c").answer
    assert isinstance(refused, Refusal)
    assert refused.message == "'c' cannot be revived: 'p', whose result it needs, is DEAD_LETTERED."
    bench.revive("p")
    bench.done("p", b"9")
    assert payloads(bench.revive("c")) == [b"[[9,1]]"]


def test_a_revived_step_keeps_what_it_had():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), ties=RESULT)
    bench.done("p", b"9")
    bench.settle("c", Rejected("bad", "no"))
    assert payloads(bench.revive("c")) == [b"[[9]]"]


def test_a_step_that_becomes_a_webhook_gets_its_parents_in_the_body():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), ties=RESULT)
    bench.done("p", b"9")
    bench.settle("c", Rejected("bad", "no"))
    applied = bench.revive("c", target=Callback("http://h/", parents=True))
    assert payloads(applied) == [b""]
    assert parents_of(applied)["parents"] == [{"intentId": "p", "status": "ACKED", "result": 9}]


def test_a_dead_letter_that_waited_for_a_failure_can_be_revived():
    bench = Bench()
    bench.submit("p")
    on = terms(after_on=AfterOn.FAILURE, expired_action=ExpiredAction.DEAD_LETTER)
    bench.submit("c", on=on, after=("p",), ties=FAILURE, deadline=100)
    bench.at(100)
    assert bench.status("c") is Status.DEAD_LETTERED
    assert payloads(bench.revive("c")) == [b"[[null]]"]


def test_a_payload_that_was_patched_to_something_else_is_delivered_as_it_is():
    bench = Bench()
    bench.submit("p")
    bench.submit("c", after=("p",), ties=RESULT)
    bench.patch("c", payload=b"7")
    assert payloads(bench.done("p", b"9")) == [b"7"]


def test_a_stream_gets_no_argument_that_nobody_asked_for():
    bench = Bench()
    bench.submit("p")
    bench.demand("w", "stream:s")
    bench.submit("c", on=stream(), after=("p",), ties=Ties(delay_ms=1_000))
    bench.done("p", b"9")
    assert payloads(bench.at(1_000)) == [b""]


def test_the_largest_result_can_be_handed_over():
    assert limits.RESULT_BYTES_MAX < limits.HANDED_BYTES_MAX
