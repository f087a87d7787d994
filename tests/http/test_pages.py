"""The document and the pages as a browser gets them."""

from __future__ import annotations

import re
import subprocess
from urllib.parse import urlencode

import pytest

from tests.http.test_schemathesis import OPERATIONS


def test_the_document(server):
    answer = server.ask("GET", "/openapi.json")
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    found = [each for methods in answer.json["paths"].values() for each in methods.values()]
    assert {each["operationId"] for each in found} == set(OPERATIONS)
    assert server.ask("GET", "/openapi.json").body == answer.body


@pytest.mark.parametrize("path", ["/docs", "/"])
def test_a_page(server, path):
    answer = server.ask("GET", path)
    assert answer.status == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/docs", "/"])
def test_no_link_is_broken(server, path):
    links = set(re.findall(r'href="(/[^"#]*)"', server.ask("GET", path).body.decode()))
    assert links
    assert {link: server.ask("GET", link).status for link in links} == dict.fromkeys(links, 200)


@pytest.mark.service
@pytest.mark.parametrize(
    ("words", "found", "hidden"),
    [
        ("DEBOUNCE", "createIntent", "getHealth"),  # of the description of a field, behind a reference
        ("order of arrival", "setLane", "cancelIntent"),
        ("40901", "createIntent", "getWhy"),
        ("getwhy", "getWhy", "createIntent"),
        ("/v1/admin/dead", "reviveDeadLetters", "reviveIntent"),
    ],
)
def test_the_page_finds_words_of_descriptions(server, tmp_path, chromium, words, found, hidden):
    page = f"{server.url}/docs?{urlencode({'find': words})}"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    shown = subprocess.run(
        [chromium, *options, "--virtual-time-budget=10000", "--dump-dom", page],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    cards = {
        id: "hidden" in re.sub(r'data-text="[^"]*"', "", rest)
        for id, rest in re.findall(r'<details class="operation" id="(\w+)"([^>]*)>', shown)
    }
    assert not cards[found] and cards[hidden], words
