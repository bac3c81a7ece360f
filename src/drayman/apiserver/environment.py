"""What the server takes from the world besides requests: time and chance. Passed in, so that tests decide both."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What generated names are made of: no vowels and no look-alikes, so that no words arise."""
SUFFIX_LENGTH: Final = 5


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


@dataclass(slots=True)
class RandomIds:
    """Ids from the system's own source of randomness."""

    _random: random.SystemRandom = field(default_factory=random.SystemRandom)

    def uid(self) -> str:
        return str(uuid.uuid4())

    def suffix(self) -> str:
        return "".join(self._random.choices(NAME_ALPHABET, k=SUFFIX_LENGTH))


def timestamp(moment: datetime) -> str:
    """A time, in UTC, as metadata has it: RFC 3339 in whole seconds."""
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"
