"""What the server shows to its clients: a certificate of its own authority, which is renewed in time while it runs."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from drayman.apiserver.protocol.environment import Clock
from drayman.apiserver.security.authority import (
    LOOK_EVERY,
    AuthorityError,
    ensure_certificates,
    renew_serving,
)

_log: Final = logging.getLogger(__name__)


class ServingTrust:
    """A context for TLS. It stays the same one: connections that are there go on, new ones are shown the latest certificate."""

    def __init__(self, directory: Path, hosts: Iterable[str], clock: Clock) -> None:
        """Raises AuthorityError and OSError."""
        self._hosts = tuple(hosts)
        self._clock = clock
        self._files = ensure_certificates(directory, self._hosts, clock.now())
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load()
        # Whoever has a certificate of the authority may show it; others are known by their tokens.
        self.context.load_verify_locations(self._files.authority)
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.authority_pem = self._files.authority_pem

    def renew(self) -> None:
        """If it is time, and clients will believe what comes."""
        try:
            if self._files.authority_pem != self.authority_pem:
                raise AuthorityError(f"{self._files.authority} has changed since the start")
            renew_serving(self._files, self._hosts, self._clock.now())
            self._load()
        except (AuthorityError, OSError) as error:
            _log.warning("the certificate of the server is not renewed: %s", error)

    async def keep(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY.total_seconds())
            self.renew()

    def _load(self) -> None:
        self.context.load_cert_chain(self._files.certificate, self._files.key)
