"""`duetime secret`: shown once, listed without the secret, two valid at a time."""

from __future__ import annotations

import json

from duetime.channels.webhook.signing import Signer
from duetime.cli.main import EXIT_ERROR, EXIT_OK, main

URL = "https://shop.example/hooks"


def test_a_secret_is_created_rotated_and_deleted(tmp_path, capsys):
    data = ["--data", str(tmp_path)]

    def run(*words: str) -> str:
        assert main(["secret", *words, *data]) == EXIT_OK
        return str(capsys.readouterr().out)

    first = run("new", URL).strip()
    Signer([first])
    second = json.loads(run("new", URL, "--json"))
    assert second["url"] == URL and second["secrets"] == 2 and second["secret"] != first
    listed = run("list")
    assert URL in listed and "2" in listed and "whsec" not in listed
    assert json.loads(run("list", "--json")) == [{"url": URL, "secrets": 2}]
    run("retire", URL)
    assert json.loads(run("list", "--json")) == [{"url": URL, "secrets": 1}]
    run("delete", URL)
    assert run("list") == ""
    assert main(["secret", "retire", URL, *data]) == EXIT_ERROR
