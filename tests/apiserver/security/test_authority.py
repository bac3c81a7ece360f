"""Certificates of the server."""

from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drayman.apiserver.security.authority import AuthorityError, ensure_certificates

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOSTS = ("localhost", "127.0.0.1", "::1")


def test_certificates_are_made_once_and_kept(tmp_path: Path) -> None:
    """A second start serves with the same certificates, so a kubeconfig stays good."""
    files = ensure_certificates(tmp_path / "pki", HOSTS, NOW)
    before = files.authority_pem, files.certificate.read_bytes()
    again = ensure_certificates(tmp_path / "pki", HOSTS, NOW + timedelta(days=1))
    assert (again.authority_pem, again.certificate.read_bytes()) == before


def test_a_client_that_trusts_the_authority_can_load_them(tmp_path: Path) -> None:
    """The files are what a TLS library wants."""
    files = ensure_certificates(tmp_path / "pki", HOSTS, NOW)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.certificate, files.key)
    client = ssl.create_default_context(cafile=str(files.authority))
    assert client.get_ca_certs()


def test_a_new_host_or_an_old_age_renews_the_serving_certificate_only(tmp_path: Path) -> None:
    """The authority stays, because kubeconfigs hold it."""
    files = ensure_certificates(tmp_path / "pki", HOSTS, NOW)
    authority, serving = files.authority_pem, files.certificate.read_bytes()
    ensure_certificates(tmp_path / "pki", (*HOSTS, "example.test"), NOW)
    renewed = files.certificate.read_bytes()
    assert renewed != serving
    ensure_certificates(tmp_path / "pki", HOSTS, NOW + timedelta(days=350))
    assert files.certificate.read_bytes() != renewed
    assert files.authority_pem == authority


def test_private_keys_are_private(tmp_path: Path) -> None:
    """Nobody but the owner can read a key."""
    files = ensure_certificates(tmp_path / "pki", HOSTS, NOW)
    for path in (files.key, tmp_path / "pki" / "ca.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """Rubbish in the directory is one clear sentence, not a traceback."""
    files = ensure_certificates(tmp_path / "pki", HOSTS, NOW)
    files.certificate.write_text("rubbish")
    with pytest.raises(AuthorityError, match="is not a certificate"):
        ensure_certificates(tmp_path / "pki", HOSTS, NOW)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file in the way of the directory is reported with its name."""
    (tmp_path / "pki").write_text("")
    with pytest.raises(AuthorityError, match="pki"):
        ensure_certificates(tmp_path / "pki", HOSTS, NOW)
