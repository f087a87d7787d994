"""Tokens and roles, and where a server without tokens may listen."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import urllib.request

import pytest
import trustme

from duetime.api.access import tokens
from tests.e2e.process import environment
from tests.http.checks import problem
from tests.http.server import ServerProcess

ROLES = ("read", "worker", "submit", "admin")
NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}}


def make_token(folder, role, name=""):
    return tokens.new(folder, role, name or role)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with a token of each role."""
    folder = tmp_path_factory.mktemp("guarded") / "data"
    known = {role: make_token(folder, role) for role in ROLES}
    with ServerProcess(folder) as server:
        yield server, known


def test_the_command_line_makes_one(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "duetime", "token", "new", "--role", "read", "--name", "me", "--data",
         str(tmp_path / "data"), "--json"],
        capture_output=True, text=True, env=environment(), check=True,
    )  # fmt: skip
    token = json.loads(run.stdout)["token"]
    assert tokens.read(tmp_path / "data")[0].sha256 == tokens.digest(token)


def test_tokens_are_kept_as_hashes(guarded):
    server, known = guarded
    kept = (server.folder / "tokens.json").read_text()
    assert all(token not in kept and token.removeprefix("duetime_") not in kept for token in known.values())
    assert (server.folder / "tokens.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"X-Duetime-Token": ""}, {"X-Duetime-Token": "duetime_wrong"}, {"Authorization": "Bearer"},
        {"Authorization": "Bearer x"}, {"Authorization": "Basic YTpi"}, {"X-Duetime-Token": "\xff\xe9"},
        {"Authorization": "Bearer " + "x" * 4000},
    ],
    ids=lambda headers: str(headers)[:40],
)  # fmt: skip
def test_no_or_a_wrong_token(guarded, headers):
    server, _ = guarded
    for method, path in (("GET", "/v1/intents/x"), ("POST", "/v1/intents"), ("GET", "/v1/events")):
        answer = server.ask(method, path, None, headers)
        problem(answer, 40101)
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_token_is_accepted_in_both_headers(guarded):
    server, known = guarded
    for headers in (
        {"X-Duetime-Token": known["read"]},
        {"Authorization": f"Bearer {known['read']}"},
        {"authorization": f"bearer  {known['read']} "},
    ):
        problem(server.ask("GET", "/v1/intents/x", None, headers), 40401)


@pytest.mark.parametrize("role", ROLES)
def test_reads_need_a_role_and_writes_need_submit_or_admin(guarded, role):
    server, known = guarded
    headers = {"X-Duetime-Token": known[role]}
    problem(server.ask("GET", "/v1/intents/none", None, headers), 40401)
    made = server.ask("POST", "/v1/intents", NEW, headers)
    batch = server.ask("POST", "/v1/intents/batch", [NEW], headers)
    changed = server.ask("POST", "/v1/intents/none/cancel", None, headers)
    if role in ("submit", "admin"):
        assert made.status == 201 and batch.status == 200
        problem(changed, 40401)
    else:
        for answer in (made, batch, changed):
            refused = problem(answer, 40301)
            assert refused["details"]["role"] == "submit" and role in refused["message"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/v1/admin/tiers/FAST", {"concurrency": 150}),
        ("POST", "/v1/admin/dead-letters/purge", {"intentIds": ["none"]}),
        ("POST", "/v1/admin/lanes/task%3Anobody/resume", None),
    ],
)
def test_admin_routes_need_the_admin_role(guarded, role, method, path, body):
    server, known = guarded
    answer = server.ask(method, path, body, {"X-Duetime-Token": known[role]})
    if role == "admin":
        assert answer.status not in (401, 403)
    else:
        problem(answer, 40301)


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready", "/health/deep", "/docs", "/"])
def test_health_and_pages_are_open(guarded, path):
    server, _ = guarded
    assert server.ask("GET", path).status in (200, 503)


@pytest.mark.parametrize(
    "path", ["/metrics", "/v1/intents", "/v1/admin/chronoscope", "/v1/admin/dead-letters"]
)
def test_other_routes_need_a_token(guarded, path):
    server, known = guarded
    problem(server.ask("GET", path), 40101)
    assert server.ask("GET", path, None, {"X-Duetime-Token": known["read"]}).status == 200


def test_no_route_tells_more_to_strangers(guarded):
    """What is unknown is refused before anything is read or said about the body."""
    server, _ = guarded
    assert b"delayMs" not in server.ask("POST", "/v1/intents", b'{"delayMs": "x"}').body
    problem(server.ask("POST", "/v1/intents", b"{"), 40101)


def test_a_token_made_while_it_runs_is_known_at_once(guarded):
    server, _ = guarded
    late = make_token(server.folder, "read", "late")
    problem(server.ask("GET", "/v1/intents/x", None, {"X-Duetime-Token": late}), 40401)


def test_no_token_is_ever_logged(guarded):
    server, known = guarded
    words = "\n".join(server.words)
    assert all(token not in words for token in known.values())


class TestLoopback:
    def test_without_a_token_others_cannot_reach_it(self, tmp_path):
        with pytest.raises(AssertionError, match="there is no token"):
            ServerProcess(tmp_path / "data", "--host", "0.0.0.0").start()

    def test_the_refusal_is_an_exit_code_and_a_hint(self, tmp_path):
        run = subprocess.run(
            [sys.executable, "-m", "duetime", "serve", "--data", str(tmp_path / "d"), "--host", "0.0.0.0",
             "--port", "0", "--grpc-port", "0"],
            capture_output=True, text=True, env=environment(), check=False, timeout=60,
        )  # fmt: skip
        assert run.returncode not in (0, None)
        assert "duetime token new" in run.stderr and "Traceback" not in run.stderr

    def test_insecure_allows_a_public_address_without_a_token(self, tmp_path):
        with ServerProcess(tmp_path / "data", "--host", "0.0.0.0", "--insecure") as server:
            server.url = server.url.replace("0.0.0.0", "127.0.0.1")
            assert server.ask("POST", "/v1/intents", NEW).status == 201

    def test_with_a_token_it_listens_anywhere(self, tmp_path):
        token = make_token(tmp_path / "data", "submit")
        with ServerProcess(tmp_path / "data", "--host", "0.0.0.0") as server:
            server.url = server.url.replace("0.0.0.0", "127.0.0.1")
            problem(server.ask("POST", "/v1/intents", NEW), 40101)
            headers = {"X-Duetime-Token": token}
            assert server.ask("POST", "/v1/intents", NEW, headers).status == 201
            metadata = {"delayMs": 0, "callback": {"url": "http://169.254.169.254/latest"}}
            answer = server.ask("POST", "/v1/intents", metadata, headers)
            assert answer.status in (201, 422)

    @pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
    def test_loopback_needs_none(self, tmp_path, host):
        if host == "::1" and not _has_ipv6():
            pytest.skip("this machine has no IPv6")
        with ServerProcess(tmp_path / "data", "--host", host) as server:
            assert server.ask("POST", "/v1/intents", NEW).status == 201


def _has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


class TestTls:
    def test_the_server_answers_over_tls(self, tmp_path):
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1")
        cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
        certificate.private_key_pem.write_to_path(key)
        for blob in certificate.cert_chain_pems:
            blob.write_to_path(cert, append=True)
        context = ssl.create_default_context()
        authority.configure_trust(context)
        with ServerProcess(tmp_path / "data", server__tls_cert=cert, server__tls_key=key) as server:
            assert server.url.startswith("https://127.0.0.1:")
            json_type = {"content-type": "application/json"}
            request = urllib.request.Request(server.url + "/v1/intents", json.dumps(NEW).encode(), json_type)
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                assert answer.status == 201

    @pytest.mark.parametrize("settings", [{"server__tls_cert": "/no"}, {"server__tls_key": "/no"},
                                          {"server__tls_cert": "/no", "server__tls_key": "/no"}])  # fmt: skip
    def test_half_of_it_is_refused(self, tmp_path, settings):
        with pytest.raises(AssertionError, match="tls_cert"):
            ServerProcess(tmp_path / "data", **settings).start()


@pytest.mark.parametrize("lost", ["deleted", "emptied"])
def test_lost_tokens_open_no_door(lost, tmp_path):
    folder = tmp_path / "data"
    token = make_token(folder, "admin")
    with ServerProcess(folder) as server:
        mine = {"x-duetime-token": token}
        assert server.ask("GET", "/v1/intents", None, mine).status == 200
        if lost == "deleted":
            (folder / tokens.FILE_NAME).unlink()
        else:
            (folder / tokens.FILE_NAME).write_text("[]")
        assert server.ask("GET", "/v1/intents").status == 401
        assert server.ask("GET", "/v1/intents", None, mine).status == 401
        again = {"x-duetime-token": make_token(folder, "admin", "again")}
        assert server.ask("GET", "/v1/intents", None, again).status == 200
