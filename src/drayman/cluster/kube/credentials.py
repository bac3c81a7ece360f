"""Who we are to the server, also where that changes while we run.

Tokens of service accounts are rotated in their file every hour, and exec plugins hand out tokens and certificates that expire. So
the client asks for the current credential before each request, and reports when the server refuses one.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from drayman.cluster.errors import CredentialsError

TOKEN_FILE_AGE: Final = 60.0
"""Seconds after which a token file is read again. Kubelets replace tokens long before they expire."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """PEM of a certificate, with its chain, and of its key."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Credential:
    """What one request is sent with."""

    authorization: str = field(default="", repr=False)
    """Value of the Authorization header; empty for none."""
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """A source of credentials."""

    async def current(self) -> Credential:
        """Raises CredentialsError."""
        ...

    def refused(self, credential: Credential) -> bool:
        """The server answered 401 to a credential. Returns whether `current` may now give a better one."""
        ...


class StaticCredentials(Struct, frozen=True):
    """Credentials that never change."""

    credential: Credential = Credential()

    async def current(self) -> Credential:
        return self.credential

    def refused(self, credential: Credential) -> bool:
        return False


ANONYMOUS: Final = StaticCredentials()


def bearer(token: str) -> str:
    """Raises CredentialsError for text that is not allowed in a header."""
    # Anything but visible ASCII would end the header or be mangled on the way.
    if not token or not all("!" <= character <= "~" for character in token):
        raise CredentialsError("a bearer token must be of visible ASCII characters, without spaces")
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    pair = f"{username}:{password}".encode()
    return f"Basic {base64.b64encode(pair).decode('ascii')}"


class TokenFileCredentials(Struct):
    """A token in a file that another process keeps fresh."""

    path: Path
    certificate: ClientCertificate | None = None
    clock: Callable[[], float] = time.monotonic
    _credential: Credential | None = None
    _read_at: float = 0.0

    async def current(self) -> Credential:
        if self._credential is None or self.clock() - self._read_at >= TOKEN_FILE_AGE:
            self._credential = Credential(bearer(await self._read()), self.certificate)
            self._read_at = self.clock()
        return self._credential

    def refused(self, credential: Credential) -> bool:
        """The file may hold a newer token than the one remembered; it is read again unless that one is itself new."""
        if self._credential is credential:
            self._credential = None
        return True

    async def _read(self) -> str:
        try:
            return (await asyncio.to_thread(self.path.read_text)).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialsError(f"token file {self.path}: {error}") from error
