"""Who is held back for whose failures: hosts that cannot be reached, and endpoints that fail alone."""

from __future__ import annotations

from duetime.channels.webhook.answers import WebhookResponse
from duetime.channels.webhook.gates import Gates, Probes, Shut
from duetime.limits import ENDPOINTS_MAX
from duetime.protocol.outcome import Failed, Rejected

ORIGIN = "http://shop.example"
BAD, FINE = f"{ORIGIN}/bad", f"{ORIGIN}/fine"
NO_PROBES = Probes(False, False)
DOWN = Failed("connect", "refused")
SLOW = Failed("timeout", "no answer in time")


class Shop:
    """One host behind its gates."""

    def __init__(self) -> None:
        self.gates = Gates(3, 5.0)
        self.host = self.gates.breaker()

    def goes(self, endpoint: str, now_s: float) -> Probes | None:
        found = self.gates.admit(self.host, ORIGIN, endpoint, now_s)
        return None if isinstance(found, Shut) else found

    def call(self, endpoint: str, answer: WebhookResponse | Failed | Rejected, now_s: float = 100.0) -> None:
        probes = self.goes(endpoint, now_s)
        assert probes is not None
        self.gates.ended(self.host, endpoint, answer, probes, now_s)


def test_errors_of_one_endpoint_do_not_hold_back_others():
    shop = Shop()
    for _ in range(3):
        shop.call(BAD, WebhookResponse(500))
    assert shop.goes(BAD, 100.0) is None and shop.gates.slowed() == [BAD]
    assert shop.goes(FINE, 100.0) == NO_PROBES and not shop.host.is_open
    shut = shop.gates.shut(shop.host, ORIGIN, BAD, 100.0)
    assert shut is not None and shut.text == f"{BAD} failed 3 times in a row; it was not called"
    assert shop.gates.shut(shop.host, ORIGIN, FINE, 100.0) is None


def test_a_slowed_endpoint_is_asked_again_and_forgotten_when_it_is_well():
    shop = Shop()
    for _ in range(3):
        shop.call(BAD, WebhookResponse(503))
    assert shop.goes(BAD, 105.0) == Probes(False, True) and shop.goes(BAD, 105.0) is None
    shop.gates.ended(shop.host, BAD, WebhookResponse(200), Probes(False, True), 105.0)
    assert shop.goes(BAD, 105.0) == NO_PROBES and len(shop.gates) == 0


def test_a_host_that_answers_anything_can_be_reached():
    shop = Shop()
    for status in (500, 502, 404, 503, 429, 500):
        shop.call(BAD, DOWN)
        shop.call(BAD, DOWN)
        shop.call(BAD, WebhookResponse(status))
    assert not shop.host.is_open


def test_a_host_that_cannot_be_reached_holds_back_everything():
    shop = Shop()
    for _ in range(3):
        shop.call(BAD, DOWN)
    assert shop.goes(FINE, 100.0) is None and len(shop.gates) == 0
    shut = shop.gates.shut(shop.host, ORIGIN, FINE, 100.0)
    assert shut is not None and "could not be reached" in shut.text
    assert shop.goes(FINE, 105.0) == Probes(True, False)


def test_a_path_that_hangs_is_slowed_down_while_others_are_answered():
    shop = Shop()
    for _ in range(3):
        shop.call(BAD, SLOW)
        shop.call(FINE, WebhookResponse(200))
    assert shop.goes(BAD, 100.0) is None and shop.goes(FINE, 100.0) == NO_PROBES


def test_the_probe_of_an_endpoint_waits_for_its_host():
    shop = Shop()
    for _ in range(3):
        shop.call(BAD, WebhookResponse(500), 100.0)
    for _ in range(3):
        shop.call(FINE, DOWN, 103.0)
    assert shop.goes(BAD, 106.0) is None, "its own time is over, the host's is not"
    assert shop.goes(BAD, 108.0) == Probes(True, True), "and its probe was given back"
    shop.gates.ended(shop.host, BAD, Rejected("address", "no"), Probes(True, True), 108.0)
    assert shop.goes(BAD, 109.0) == Probes(True, True), "a call that told nothing is followed by another"


def test_endpoints_are_not_remembered_for_ever():
    shop = Shop()
    for number in range(ENDPOINTS_MAX + 10):
        shop.call(f"{ORIGIN}/{number}", WebhookResponse(500))
    assert len(shop.gates) == ENDPOINTS_MAX
