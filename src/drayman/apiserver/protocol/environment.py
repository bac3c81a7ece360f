"""What the server takes from outside besides requests: time and randomness. Passed in, so that tests decide both."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Final, Protocol

NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated names: no vowels and no look-alikes, so that they never spell words."""
SUFFIX_LENGTH: Final = 5
_FAIR_BYTES: Final = 256 - 256 % len(NAME_ALPHABET)
"""Bytes below this give every letter the same chance."""
_POOLED: Final = 8192


class Clock(Protocol):
    def now(self) -> datetime:
        """The present time, in UTC."""


class Ids(Protocol):
    def uid(self) -> str:
        """A new unique id for an object or a request."""

    def suffix(self) -> str:
        """The random end of a generated name."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class RandomIds:
    """Ids from the system's source of randomness, drawn many at a time: a system call for each would cost more than everything else."""

    __slots__ = ("_pool", "_used")

    def __init__(self) -> None:
        self._pool = b""
        self._used = 0

    def uid(self) -> str:
        """A UUID of version 4."""
        digits = self._take(16).hex()
        variant = "89ab"[int(digits[16], 16) & 3]
        return (
            f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
        )

    def suffix(self) -> str:
        letters = ""
        while len(letters) < SUFFIX_LENGTH:
            (byte,) = self._take(1)
            if byte < _FAIR_BYTES:
                letters += NAME_ALPHABET[byte % len(NAME_ALPHABET)]
        return letters

    def _take(self, count: int) -> bytes:
        if self._used + count > len(self._pool):
            self._pool, self._used = os.urandom(_POOLED), 0
        taken = self._pool[self._used : self._used + count]
        self._used += count
        return taken
