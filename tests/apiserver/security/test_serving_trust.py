"""The certificate that a server shows, while it runs for years."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from drayman.apiserver.security.serving_trust import ServingTrust


@dataclass
class Time:
    value: datetime

    def now(self) -> datetime:
        return self.value


def shown(trust: ServingTrust) -> x509.Certificate:
    """What a client that trusts the authority gets to see in a handshake, without any network between the two."""
    client = ssl.create_default_context(cadata=trust.authority_pem.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    theirs = trust.context.wrap_bio(to_server, to_client, server_side=True)
    for end in (ours, theirs, ours):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = ours.getpeercert(binary_form=True)
    assert found is not None
    return x509.load_der_x509_certificate(found)


def test_it_is_renewed_in_time_and_not_before(tmp_path: Path) -> None:
    """Clients keep the authority of the first day; connections made after that are shown the new one."""
    time = Time(datetime.now(UTC) - timedelta(days=340))  # clients have the time of the machine
    trust = ServingTrust(tmp_path, ["localhost"], time)
    first = shown(trust)
    time.value += timedelta(days=300)
    trust.renew()
    assert shown(trust) == first
    time.value += timedelta(days=40)
    trust.renew()
    assert shown(trust).not_valid_after_utc > first.not_valid_after_utc + timedelta(days=300)


@pytest.mark.parametrize("name", ["ca.crt", "ca.key"])
def test_nothing_is_shown_that_clients_would_not_believe(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """If the authority is lost, no other takes its place while the server runs."""
    time = Time(datetime.now(UTC))
    trust = ServingTrust(tmp_path, ["localhost"], time)
    first = shown(trust)
    (tmp_path / name).unlink()
    time.value += timedelta(days=350)
    with caplog.at_level(logging.WARNING):
        trust.renew()
    assert "No such file or directory" in caplog.text
    assert name in caplog.text
    assert shown(trust) == first
    assert not (tmp_path / name).exists()


def test_another_authority_in_its_place_signs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time = Time(datetime.now(UTC))
    trust = ServingTrust(tmp_path, ["localhost"], time)
    first = shown(trust)
    for path in (tmp_path / "ca.crt", tmp_path / "ca.key"):
        path.unlink()
    ServingTrust(tmp_path, ["localhost"], time)
    with caplog.at_level(logging.WARNING):
        trust.renew()
    assert "ca.crt has changed since the start" in caplog.text
    assert shown(trust) == first
