"""Tokens that are forged, over or noise, and impersonation by those who may not and of those who are nobody."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from robustness.hostile import CONFIG_MAPS, PODS, Target
from robustness.raw import Listening, get, listening

from drayman.apiserver.instance.access import secure
from drayman.apiserver.security.tokens import (
    ISSUER,
    ServiceAccountClaims,
    TokenIssuer,
    new_signing_key,
)

ADMIN_TOKEN = "the-administrators-token"
NOW = datetime.now(UTC)
ISSUING = TokenIssuer(new_signing_key())


def claims(uid: str = "u", name: str = "default") -> ServiceAccountClaims:
    return ServiceAccountClaims("default", name, uid, "id", (ISSUER,))


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def signed(payload: dict[str, Any], key: Any, algorithm: str | None, **headers: Any) -> str:
    return jwt.encode(payload, key, algorithm, headers=headers)


def forged() -> dict[str, str]:
    """Tokens that nobody was given."""
    good, _ = ISSUING.issue(claims(), NOW, timedelta(hours=1))
    head, payload, signature = good.split(".")
    content = jwt.decode(good, options={"verify_signature": False})
    return {
        "expired": ISSUING.issue(claims(), NOW - timedelta(hours=2), timedelta(hours=1))[0],
        "for an account that is another one by now": good,
        "for no account": ISSUING.issue(claims(name="gone"), NOW, timedelta(hours=1))[0],
        "without algorithm": signed(content, None, "none"),
        "without signature": f"{head}.{payload}.",
        "with the signature of another": f"{head}.{part({**content, 'sub': 'x'})}.{signature}",
        "with another key": signed(content, ec.generate_private_key(ec.SECP256R1()), "ES256"),
        "with another algorithm": signed(
            content, rsa.generate_private_key(public_exponent=65537, key_size=2048), "RS256"
        ),
        "with a shared secret": signed(content, "k" * 64, "HS256"),
        "that ends at no time": f"{head}.{part({**content, 'exp': 'never'})}.{signature}",
        "that is no object": f"{head}.{part([1])}.{signature}",
        "with a header that is no object": f"{part(1)}.{payload}.{signature}",
        "with critical headers": signed(content, "k" * 64, "HS256", crit=["zz"], zz=1),
        "of dots": "." * 5_000,
        "of two parts": "a.b",
        "that is empty": "",
        "that is long": "a" * 15_000,
        "deeply nested": f"{head}.{base64.urlsafe_b64encode(b'[' * 9_000).decode()}.{signature}",
        "that is nearly the administrator's": ADMIN_TOKEN[:-1],
        "that begins as the administrator's": ADMIN_TOKEN + "\x00",
    }


ODD_AUTHORIZATION = {
    "another scheme": b"Basic YTpi",
    "no scheme": ADMIN_TOKEN.encode(),
    "bytes that are no text": b"Bearer \xff\xfe\xed\xa0\x80",
    "letters of other alphabets": "Bearer τοκεν".encode(),
    "a scheme of strange bytes": b"\xff\xff x",
    "two tokens": b"Bearer a, Bearer " + ADMIN_TOKEN.encode(),
}
IMPERSONATIONS: dict[str, dict[str, str]] = {
    "a user": {"impersonate-user": "system:admin"},
    "the masters": {"impersonate-user": "x", "impersonate-group": "system:masters"},
    "a group without a user": {"impersonate-group": "system:masters"},
    "an id without a user": {"impersonate-uid": "1"},
    "nobody": {"impersonate-user": ""},
    "an unknown header": {"impersonate-zz": "x"},
    "many groups": {"impersonate-user": "x", "impersonate-group": "\n".join(map(str, range(500)))},
    "an extra of no name": {"impersonate-user": "x", "impersonate-extra-": "y"},
    "an extra of odd escapes": {"impersonate-user": "x", "impersonate-extra-%zz%ff%00": "y"},
    "a name of colons": {"impersonate-user": "system:serviceaccount:::"},
    "an account of no namespace": {"impersonate-user": "system:serviceaccount:"},
    "a huge name": {"impersonate-user": "x" * 10_000},
    "a name of control characters": {"impersonate-user": "a\x00\x1b\u202e"},
    "a name of strange characters": {"impersonate-user": "\U0010ffff\ufffd é"},
}


@asynccontextmanager
async def secured() -> AsyncIterator[Listening]:
    """A target that knows one administrator. It is as open as before on the way out, where it is looked over."""
    async with listening() as server:
        api = server.target.server
        open_to_all = (api.authenticator, api.core.authorizer, api.impersonation)
        secure(server.target.server, ADMIN_TOKEN, ISSUING)
        try:
            assert await bearing(server.target, ADMIN_TOKEN) == 200
            yield server
            assert await bearing(server.target, ADMIN_TOKEN) == 200
        finally:
            api.authenticator, api.core.authorizer, api.impersonation = open_to_all


async def bearing(target: Target, token: str, **headers: str) -> int:
    given = {"authorization": f"Bearer {token}", **headers}
    return await target.send("GET", CONFIG_MAPS, headers=given)


async def test_tokens_that_nobody_was_given_are_refused() -> None:
    """401, whatever is wrong with them."""
    async with secured() as server:
        for name, token in forged().items():
            assert await bearing(server.target, token) == 401, name


async def test_a_token_is_good_only_for_its_account() -> None:
    """The account it was made for may do what it may and nothing else, also in another's name."""
    async with secured() as server:
        account = server.target.server.core.objects.get("serviceaccounts", "default", "default")
        assert account is not None
        uid = account["metadata"]["uid"]
        token, _ = ISSUING.issue(claims(uid), NOW, timedelta(hours=1))
        assert await bearing(server.target, token) == 403
        for name, headers in IMPERSONATIONS.items():
            status = await bearing(server.target, token, **headers)
            assert status in (400, 403), name


@pytest.mark.parametrize("name", ODD_AUTHORIZATION)
async def test_odd_credentials_are_refused(name: str) -> None:
    """Bytes of any kind in the header get 401."""
    async with secured() as server:
        line = await server.ask(get(PODS, b"Authorization: " + ODD_AUTHORIZATION[name]))
        assert b" 401 " in line, line


@pytest.mark.parametrize("name", IMPERSONATIONS)
async def test_odd_impersonation_is_answered(name: str) -> None:
    """For the administrator, who may be anybody, and for somebody without a token, who may be nobody."""
    async with secured() as server:
        headers = IMPERSONATIONS[name]
        for path in (CONFIG_MAPS, "/api", "/zz", f"{PODS}/p/log"):
            given = {"authorization": f"Bearer {ADMIN_TOKEN}", **headers}
            assert await server.target.send("GET", path, headers=given) < 500
            assert await server.target.send("GET", path, headers=headers) in (400, 403)


async def test_impersonation_of_strange_bytes_is_answered() -> None:
    """Names that are no text, in every header about them."""
    strange = b"\xff\xfe\xed\xa0\x80"
    token = b"Authorization: Bearer " + ADMIN_TOKEN.encode()
    async with secured() as server:
        for header in (b"Impersonate-Group", b"Impersonate-Uid", b"Impersonate-Extra-a"):
            for path in (CONFIG_MAPS, "/zz"):
                request = get(
                    path, token, b"Impersonate-User: " + strange, header + b": " + strange
                )
                line = await server.ask(request)
                assert line.split()[1].startswith(b"4"), line


async def test_impersonation_leaves_nothing_behind() -> None:
    """The next request on the same connection is its sender's own again."""
    async with secured() as server:
        token = b"Authorization: Bearer " + ADMIN_TOKEN.encode()
        reader, writer = await server.connect()
        statuses = []
        for headers in ((token, b"Impersonate-User: nobody"), (token,), ()):
            writer.write(get(PODS, *headers))
            head = await reader.readuntil(b"\r\n\r\n")
            statuses.append(int(head.split()[1]))
            await reader.readexactly(length_of(head))
        assert statuses == [403, 200, 403]
        assert (await bearing(server.target, ADMIN_TOKEN)) == 200


def length_of(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
