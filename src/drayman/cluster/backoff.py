"""How long to wait before trying again: longer each time, and never the same for two clients.

Clients that lost the same server would otherwise all come back at once and overload it again. The random part is passed in, so that tests
can control it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds that double from `initial` to `cap`, each shortened by up to half at random."""

    initial: float = 0.1
    cap: float = 30.0
    rng: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def delay(self, failures: int) -> float:
        """Seconds before the next attempt, after this many failures in a row (1 or more)."""
        # 2**60 seconds is past any cap, and larger exponents would overflow a float.
        longest = min(self.cap, self.initial * 2.0 ** min(failures - 1, 60))
        return longest * (1.0 - self.rng.random() / 2.0)
