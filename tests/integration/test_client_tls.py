"""A client and a server that speaks TLS."""

from __future__ import annotations

import ssl

import pytest
import trustme

from duetime import errors
from duetime.client.http.client import Client
from tests.http.server import ServerProcess


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def server(authority, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    for part in certificate.cert_chain_pems:
        part.write_to_path(str(folder / "cert.pem"), append=True)
    settings = {"server__tls_cert": folder / "cert.pem", "server__tls_key": folder / "key.pem"}
    with ServerProcess(folder / "data", **settings) as server:
        yield server


def test_a_private_certificate_authority(server, authority):
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with Client(server.url, tls=trusting) as client:
        made = client.create(delay_ms=3_600_000, stream={"name": "s"}).wait()
        assert client.get(made.intent_id).wait().status == "SCHEDULED"


def test_a_server_that_cannot_be_trusted_is_not_asked_twice(server):
    with Client(server.url) as client:
        with pytest.raises(errors.Unreachable, match="untrusted certificate") as caught:
            client.health().wait()
        assert not caught.value.retryable and "SSL_CERT_FILE" in caught.value.hint


def test_an_address_with_the_wrong_scheme(server):
    with Client(server.url.replace("https", "http"), tries=1) as client, pytest.raises(errors.Unreachable):
        client.health().wait()
