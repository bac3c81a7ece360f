"""Tokens: one for the administrator, and signed ones for service accounts as issued by TokenRequest."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from drayman.api.node_identity import NODE_USER
from drayman.api.struct import Json
from drayman.bounded import Bounded

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
ALGORITHM: Final = "ES256"
_PRIVATE_CLAIM: Final = "kubernetes.io"
_MOST_KNOWN: Final = 4_096
"""The name of the agent of a node begins with it."""


def new_secret() -> str:
    """A token that cannot be guessed."""
    return secrets.token_urlsafe(32)


def same_secret(given: str, expected: str) -> bool:
    """Whether two secrets are equal, in a time that does not reveal how much of them agrees."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


BINDABLE: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
"""What a token can be bound to, by kind, with its name in the store."""


@dataclass(frozen=True, slots=True)
class BoundObject:
    """The object with whose deletion a token becomes invalid."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ServiceAccountClaims:
    """What a service account token says."""

    namespace: str
    name: str
    uid: str
    token_id: str
    audiences: tuple[str, ...]
    bound: BoundObject | None = None
    node: BoundObject | None = None
    """The node of the pod that the token is bound to."""


class TokenIssuer:
    """Signs tokens of service accounts, and reads them back."""

    def __init__(self, private_key_pem: bytes) -> None:
        key = serialization.load_pem_private_key(private_key_pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("service account tokens are signed with an elliptic curve key")
        self._private = key
        self._public = key.public_key()
        encoded = self._public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._known: Bounded[bytes, Mapping[str, Json]] = Bounded(_MOST_KNOWN)
        """What valid tokens say, by their digests."""
        self._key_id = hashlib.sha256(encoded).hexdigest()[:32]

    def issue(
        self, claims: ServiceAccountClaims, now: datetime, lifetime: timedelta
    ) -> tuple[str, datetime]:
        """A token and its expiry time."""
        expires = (now + lifetime).replace(microsecond=0)
        seconds = int(now.timestamp())
        private: dict[str, Json] = {
            "namespace": claims.namespace,
            "serviceaccount": {"name": claims.name, "uid": claims.uid},
        }
        for bound in (claims.bound, claims.node):
            if bound is not None:
                uid = {"uid": bound.uid} if bound.uid else {}
                private[bound.kind.lower()] = {"name": bound.name, **uid}
        payload: dict[str, Json] = {
            "aud": list(claims.audiences),
            "exp": int(expires.timestamp()),
            "iat": seconds,
            "nbf": seconds,
            "iss": ISSUER,
            "jti": claims.token_id,
            "sub": f"system:serviceaccount:{claims.namespace}:{claims.name}",
            _PRIVATE_CLAIM: private,
        }
        headers = {"kid": self._key_id}
        return jwt.encode(payload, self._private, ALGORITHM, headers=headers), expires

    def read(
        self, token: str, audiences: tuple[str, ...], now: datetime
    ) -> ServiceAccountClaims | None:
        """What a token says, if we issued it, it is still valid, and it is meant for one of the audiences."""
        payload = self._current(token, audiences, now)
        return None if payload is None else _claims(payload, tuple(payload["aud"]))

    def issue_to_node(self, node: str, now: datetime, lifetime: timedelta) -> str:
        """A token with which the agent of a node identifies itself."""
        payload: dict[str, Json] = {
            "aud": [ISSUER],
            "exp": int((now + lifetime).timestamp()),
            "iat": int(now.timestamp()),
            "nbf": int(now.timestamp()),
            "iss": ISSUER,
            "jti": secrets.token_hex(16),
            "sub": f"{NODE_USER}{node}",
        }
        return jwt.encode(payload, self._private, ALGORITHM, headers={"kid": self._key_id})

    def read_node(self, token: str, audiences: tuple[str, ...], now: datetime) -> str | None:
        """The node that a token was issued to, if it is a node's and is still valid."""
        payload = self._current(token, audiences, now)
        subject = str(payload.get("sub", "")) if payload is not None else ""
        # Tokens of service accounts carry more, and no account can be called like a node.
        if payload is None or _PRIVATE_CLAIM in payload or not subject.startswith(NODE_USER):
            return None
        return subject.removeprefix(NODE_USER)

    def _current(
        self, token: str, audiences: tuple[str, ...], now: datetime
    ) -> Mapping[str, Json] | None:
        payload = self._verified(token)
        if payload is None:
            return None
        expires = datetime.fromtimestamp(payload.get("exp", 0), UTC)
        if expires <= now or not set(audiences) & set(payload.get("aud", [])):
            return None
        return payload

    def _verified(self, token: str) -> Mapping[str, Json] | None:
        """The content of a token with our signature. Checking that takes longer than most requests, so it is done once."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        known = self._known.get(digest)
        if known is not None:
            return known
        try:
            payload: Mapping[str, Json] = jwt.decode(
                token,
                self._public,
                algorithms=[ALGORITHM],
                issuer=ISSUER,
                options={
                    "verify_aud": False,
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidTokenError:
            return None
        self._known[digest] = payload
        return payload


def _claims(payload: Mapping[str, Json], audiences: tuple[str, ...]) -> ServiceAccountClaims | None:
    private = payload.get(_PRIVATE_CLAIM)
    if not isinstance(private, dict):
        return None
    account = private.get("serviceaccount") or {}
    found = [
        BoundObject(kind, private[kind.lower()]["name"], private[kind.lower()].get("uid", ""))
        for kind in ("Pod", "Secret", "Node")
        if kind.lower() in private
    ]
    return ServiceAccountClaims(
        namespace=private.get("namespace", ""),
        name=account.get("name", ""),
        uid=account.get("uid", ""),
        token_id=str(payload.get("jti", "")),
        audiences=audiences,
        bound=found[0] if found else None,
        node=found[1] if len(found) > 1 else None,
    )


def new_signing_key() -> bytes:
    """A private key for an issuer, as PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
