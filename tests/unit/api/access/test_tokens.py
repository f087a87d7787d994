"""The file of tokens: changed by one at a time, read again when it changes, believed only when whole."""

from __future__ import annotations

import resource
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from duetime.api.access import tokens
from duetime.api.access.auth import Grant, Role
from duetime.api.access.scopes import Scope
from duetime.errors import BadConfig, InvalidField

ROUNDS = 100


def test_a_revoked_token_does_not_come_back(tmp_path):
    """Both read the file and wrote it whole: the later one brought back what the earlier had taken away."""
    tokens.new(tmp_path, "admin", "me")
    with ThreadPoolExecutor(3) as pool:
        for number in range(ROUNDS):
            tokens.new(tmp_path, "read", f"old-{number}")
            works: list[Future[Any]] = [
                pool.submit(tokens.revoke, tmp_path, f"old-{number}"),
                pool.submit(tokens.new, tmp_path, "read", f"a-{number}"),
                pool.submit(tokens.new, tmp_path, "read", f"b-{number}"),
            ]
            for work in works:
                work.result()
    names = {token.name for token in tokens.read(tmp_path)}
    assert names == {"me"} | {f"{letter}-{number}" for letter in "ab" for number in range(ROUNDS)}


def test_two_tokens_of_one_name_are_never_made(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        works = [pool.submit(tokens.new, tmp_path, "read", "same") for _ in range(8)]
    assert sum(work.exception() is None for work in works) == 1
    assert len(tokens.read(tmp_path)) == 1


def test_a_change_of_the_same_length_in_the_same_moment_is_seen(tmp_path):
    known = tokens.Known(tmp_path)
    tokens.new(tmp_path, "read", "a")
    for name in "bcdefgh":
        before = known.grants()
        tokens.revoke(tmp_path, tokens.read(tmp_path)[0].name)
        tokens.new(tmp_path, "read", name)
        assert known.grants() != before


@pytest.mark.parametrize("broken", [b"", b"[{", b"{}", b'[{"name":"x"}]', b'[{"name":1}]'])
def test_with_a_broken_file_the_last_good_tokens_stay(tmp_path, broken):
    tokens.new(tmp_path, "admin", "me")
    known = tokens.Known(tmp_path)
    good = known.grants()
    (tmp_path / tokens.FILE_NAME).write_bytes(broken)
    assert known.grants() == good
    assert "tokens.json" in known.trouble()
    assert known.grants() is good, "it is not read again before it changes"
    (tmp_path / tokens.FILE_NAME).unlink()
    tokens.new(tmp_path, "read", "new")
    assert known.trouble() == ""
    assert [grant.roles for grant in known.grants()] == [{Role.read}]


def test_a_file_that_cannot_be_looked_at_changes_nothing(tmp_path):
    folder = tmp_path / "data"
    tokens.new(folder, "admin", "me")
    known = tokens.Known(folder)
    good = known.grants()
    folder.rename(tmp_path / "moved")
    folder.write_bytes(b"a file where the folder was")
    assert known.grants() == good
    assert known.trouble()
    folder.unlink()
    (tmp_path / "moved").rename(folder)
    assert known.grants() == good
    assert known.trouble() == "", "it was for a moment only"


def test_a_token_that_was_revoked_while_no_file_could_be_opened_is_refused_soon(tmp_path):
    """The change counted as seen, so the token stayed good until the next change."""
    tokens.new(tmp_path, "admin", "me")
    tokens.new(tmp_path, "admin", "thief")
    known = tokens.Known(tmp_path)
    assert len(known.grants()) == 2
    tokens.revoke(tmp_path, "thief")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        assert len(known.grants()) == 2
        trouble = known.trouble()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "tokens.json" in trouble
    assert len(known.grants()) == 1
    assert known.trouble() == ""


def test_at_the_start_a_broken_file_is_an_error(tmp_path):
    (tmp_path / tokens.FILE_NAME).write_bytes(b"[{")
    with pytest.raises(BadConfig, match=r"tokens\.json"):
        tokens.Known(tmp_path).grants()


def test_a_token_is_bound_to_queues_and_entity_types(tmp_path):
    tokens.new(tmp_path, "worker", "w", queues=("mail", "sms"), entity_types=("cart",))
    assert b'"entityTypes"' in (tmp_path / tokens.FILE_NAME).read_bytes()
    assert tokens.Known(tmp_path).grants()[0].scope == Scope(("mail", "sms"), ("cart",))


@pytest.mark.parametrize("role", ["read", "admin"])
def test_a_role_without_queues_is_not_bound(tmp_path, role):
    with pytest.raises(InvalidField, match="cannot be bound"):
        tokens.new(tmp_path, role, "x", queues=("mail",))


@pytest.mark.parametrize("queues", [("",), ("x" * 1_000,), tuple(map(str, range(1_000)))])
def test_names_in_a_scope_are_bounded(tmp_path, queues):
    with pytest.raises(InvalidField):
        tokens.new(tmp_path, "worker", "x", queues=queues)


def test_a_token_has_several_roles(tmp_path):
    tokens.new(tmp_path, "worker, submit,worker", "both", queues=("mail",))
    [grant] = tokens.Known(tmp_path).grants()
    assert grant.roles == {Role.worker, Role.submit} and grant.scope == Scope(("mail",), ())
    stored = msgspec.json.decode((tmp_path / tokens.FILE_NAME).read_bytes())
    assert stored[0]["role"] == ["worker", "submit"]


def test_a_file_with_one_role_per_token_is_read(tmp_path):
    """The form of files that were written before a token could have several roles."""
    sha256 = tokens.digest("secret")
    (tmp_path / tokens.FILE_NAME).write_text(f'[{{"name": "me", "role": "worker", "sha256": "{sha256}"}}]')
    [grant] = tokens.Known(tmp_path).grants()
    assert grant == Grant(sha256, frozenset({Role.worker}))
    tokens.new(tmp_path, "read", "other")
    stored = msgspec.json.decode((tmp_path / tokens.FILE_NAME).read_bytes())
    assert [each["role"] for each in stored] == ["worker", "read"]


@pytest.mark.parametrize("role", ["", "worker,", "worker,root", "Worker"])
def test_an_unknown_role_is_refused(tmp_path, role):
    with pytest.raises(InvalidField, match="There is no role"):
        tokens.new(tmp_path, role, "me")


def test_a_scope_needs_roles_that_concern_queues(tmp_path):
    with pytest.raises(InvalidField, match=r"role worker,admin cannot be bound"):
        tokens.new(tmp_path, "worker,admin", "me", queues=("mail",))
