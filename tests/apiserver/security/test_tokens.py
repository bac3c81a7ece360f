"""Tokens of service accounts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from drayman.apiserver.security.tokens import (
    ISSUER,
    BoundObject,
    ServiceAccountClaims,
    TokenIssuer,
    new_secret,
    new_signing_key,
    same_secret,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CLAIMS = ServiceAccountClaims(
    "team", "bot", "uid-1", "token-1", (ISSUER,), BoundObject("Pod", "p", "uid-2")
)


@pytest.fixture(scope="module")
def issuer() -> TokenIssuer:
    return TokenIssuer(new_signing_key())


def test_a_token_says_what_it_was_made_of(issuer: TokenIssuer) -> None:
    """Reading back gives the claims, the bound object included."""
    token, expires = issuer.issue(CLAIMS, NOW, timedelta(hours=1))
    assert expires == NOW + timedelta(hours=1)
    assert issuer.read(token, (ISSUER,), NOW + timedelta(minutes=59)) == CLAIMS


def test_a_token_ends(issuer: TokenIssuer) -> None:
    """After its time a token is nobody's."""
    token, expires = issuer.issue(CLAIMS, NOW, timedelta(hours=1))
    assert issuer.read(token, (ISSUER,), expires) is None


def test_a_token_is_for_its_audience(issuer: TokenIssuer) -> None:
    """A token for somebody else does not open this server."""
    token, _ = issuer.issue(CLAIMS, NOW, timedelta(hours=1))
    assert issuer.read(token, ("vault",), NOW) is None


@pytest.mark.parametrize(
    "spoil", [lambda t: t[:-4] + "AAAA", lambda t: "x" + t, lambda t: "", lambda t: "a.b.c"]
)
def test_a_spoilt_token_is_nobodys(issuer: TokenIssuer, spoil: object) -> None:
    """What was not signed by this server is refused, never an exception."""
    token, _ = issuer.issue(CLAIMS, NOW, timedelta(hours=1))
    assert callable(spoil)
    assert issuer.read(spoil(token), (ISSUER,), NOW) is None


def test_another_servers_token_is_nobodys(issuer: TokenIssuer) -> None:
    """Each server has a key of its own."""
    token, _ = TokenIssuer(new_signing_key()).issue(CLAIMS, NOW, timedelta(hours=1))
    assert issuer.read(token, (ISSUER,), NOW) is None


def test_secrets_differ_and_compare() -> None:
    """Two secrets are never the same; one is the same as itself."""
    one, other = new_secret(), new_secret()
    assert same_secret(one, one)
    assert not same_secret(one, other)
    assert not same_secret("ü", one)


def test_a_signature_is_checked_once_and_the_rest_each_time(
    issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A known token still ends with its time and is for its audience alone."""
    token, expires = issuer.issue(CLAIMS, NOW, timedelta(hours=1))
    checked = []
    decode = jwt.decode

    def counted(*args: Any, **options: Any) -> Any:
        checked.append(args)
        return decode(*args, **options)

    monkeypatch.setattr(jwt, "decode", counted)
    for _ in range(3):
        assert issuer.read(token, (ISSUER,), NOW) == CLAIMS
    assert issuer.read(token, (ISSUER,), expires) is None
    assert issuer.read(token, ("vault",), NOW) is None
    assert len(checked) == 1
    for _ in range(2):
        assert issuer.read(token[:-4] + "AAAA", (ISSUER,), NOW) is None
    assert len(checked) == 3, "what is not valid is not kept"
