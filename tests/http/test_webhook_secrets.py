"""Secrets of endpoints: a real server signs with them, with two while one replaces the other."""

from __future__ import annotations

import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from duetime.channels.webhook import secrets
from tests.http.server import ServerProcess


def test_each_endpoint_has_its_own_secrets(tmp_path, hooks):
    folder = tmp_path / "data"
    old, _ = secrets.add(folder, hooks.url("rotated"))
    new, _ = secrets.add(folder, hooks.url("rotated"))
    other, _ = secrets.add(folder, hooks.url("other/path"))
    with ServerProcess(folder) as server:
        for path in ("rotated", "other/path/deeper", "unsigned"):
            server.create(delayMs=0, callback={"url": hooks.url(path)})
        for path, valid in (("rotated", (old, new)), ("other/path/deeper", (other,))):
            request = hooks.take(path)
            for secret in (old, new, other):
                if secret in valid:
                    Webhook(secret).verify(request.body, dict(request.headers))
                else:
                    with pytest.raises(WebhookVerificationError):
                        Webhook(secret).verify(request.body, dict(request.headers))
        assert "webhook-signature" not in hooks.take("unsigned").headers
        shown = server.ask("GET", "/v1/intents").body + server.ask("GET", "/v1/admin/chronoscope").body
    assert not any(secret.encode() in shown for secret in (old, new, other))
