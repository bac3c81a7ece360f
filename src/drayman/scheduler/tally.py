"""What a scheduler counts for whoever runs it: things that should not happen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """Counts since the start."""

    claims_lost: int = 0
    """Claims that were taken from pods on nodes."""
    taken_back: int = 0
    """Allocations that gave way to another claim."""
    held_twice: int = 0
    """Times that pods on nodes were found to hold more than there is."""
