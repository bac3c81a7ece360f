"""How often a law is tried that costs more than others, or less: as a share of what the profile in use gives to each."""

from __future__ import annotations

from hypothesis import settings


def rounds(of_hundred: int) -> int:
    """So many rounds where a law gets a hundred, and as many more where the profile gives more (`make test-long`)."""
    return max(1, settings.default.max_examples * of_hundred // 100)
