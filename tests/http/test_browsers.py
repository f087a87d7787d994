"""Pages of other sites in a real browser: they change nothing here and read nothing."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser import Browser
from tests.http.server import ServerProcess

pytestmark = pytest.mark.service
FOREIGN = "attacker.example"
"""Also the name under which a page reaches this server after it has changed its address (DNS rebinding)."""


class _Page(http.server.BaseHTTPRequestHandler):
    """A page of the attacker's. Its frames are left alone: a form's answer goes into one."""

    def do_GET(self) -> None:
        body = b"<!doctype html><title>kittens</title><iframe name=frame></iframe>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said: Any) -> None: ...


@pytest.fixture(scope="module")
def attacker() -> Iterator[int]:
    """The port of the attacker's site."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        yield site.server_address[1]
        site.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def victim(tmp_path_factory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("browsers") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def browser(chromium) -> Iterator[Browser]:
    with Browser(chromium, FOREIGN).running() as browser:
        yield browser


NEW = json.dumps({"delayMs": 3_600_000, "stream": {"name": "nobody"}})

# Each way a page has to send something it may not read the answer of.
ATTACKS = """
const url = URL, found = {}, body = BODY;
const attempt = async (name, path, options) => {
    try {
        const answer = await fetch(url + path, options);
        found[name] = `${answer.type} ${answer.status}`;
    } catch (error) { found[name] = 'refused'; }
};
const form = (type, name, value) => new Promise(done => {
    const form = document.createElement('form'), field = document.createElement('input');
    Object.assign(form, {method: 'POST', action: url + '/v1/intents', enctype: type, target: 'frame'});
    Object.assign(field, {name: name, value: value});
    form.append(field);
    document.body.append(form);
    document.querySelector('iframe').onload = done;
    form.submit();
});
await attempt('plain', '/v1/intents', {method: 'POST', body, mode: 'no-cors'});
await attempt('blob', '/v1/intents', {method: 'POST', body: new Blob([body]), mode: 'no-cors'});
await attempt('pause', '/v1/admin/lanes/task:x/pause', {method: 'POST', mode: 'no-cors'});
await attempt('purge', '/v1/dead-letters/purge', {method: 'POST', mode: 'no-cors'});
await attempt('json', '/v1/intents', {method: 'POST', body, headers: {'content-type': 'application/json'}});
await attempt('read', '/v1/intents', {});
await attempt('health', '/health', {});
await form('text/plain', body.slice(0, -1) + ', "tags": {"a": "', '"}}');
await form('application/x-www-form-urlencoded', body, '');
return found;
"""


def intents(server: ServerProcess) -> list[Any]:
    found: list[Any] = server.ask("GET", "/v1/intents").json["items"]
    return found


@pytest.mark.parametrize(
    "host", [FOREIGN, "localhost", "127.0.0.1"], ids=["cross-site", "same-site", "address"]
)
def test_a_page_of_another_site_does_nothing(victim, attacker, browser, host):
    """Another site, and another port of this machine, which a browser calls the same site."""
    port = urlsplit(victim.url).port
    url = f"http://{'127.0.0.1' if host == '127.0.0.1' else 'localhost'}:{port}"
    script = ATTACKS.replace("URL,", f"{json.dumps(url)},").replace("BODY", json.dumps(NEW))
    found = browser.evaluate(f"http://{host}:{attacker}/", script)
    assert intents(victim) == []
    lanes = victim.ask("GET", "/v1/admin/lanes").body.decode()
    assert '"paused":true' not in lanes
    assert {found[name] for name in ("json", "read", "health")} == {"refused"}, found
    assert found.keys() == {"plain", "blob", "pause", "purge", "json", "read", "health"}


def test_a_name_that_leads_here_all_of_a_sudden(victim, browser):
    """To the browser this is the attacker's own origin: only the Host header tells."""
    place = f"http://{FOREIGN}:{urlsplit(victim.url).port}"
    script = f"""
        const body = {json.dumps(NEW)}, headers = {{'content-type': 'application/json'}};
        const found = [];
        for (const [path, options] of [
            ['/v1/intents', {{}}], ['/health', {{}}], ['/v1/intents', {{method: 'POST', body, headers}}],
        ]) {{
            const answer = await fetch(path, options);
            found.push([answer.status, (await answer.json()).errorCode]);
        }}
        return found;
    """
    assert browser.evaluate(f"{place}/docs", script) == [[403, 40303]] * 3
    assert intents(victim) == []


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_page_of_its_own_works(browser, tmp_path, host):
    with ServerProcess(tmp_path / "data") as server:
        place = f"http://{host}:{urlsplit(server.url).port}"
        script = f"""
            const headers = {{'content-type': 'application/json'}};
            const made = await fetch('/v1/intents', {{method: 'POST', body: {json.dumps(NEW)}, headers}});
            const list = await fetch('/v1/intents');
            return [made.status, list.status, (await list.json()).items.length, document.title];
        """
        status, listed, count, title = browser.evaluate(f"{place}/docs", script)
        assert (status, listed, count) == (201, 200, 1) and "Duetime" in title
