"""How a node has devices prepared, by whomever: plugins on a real node, simulated drivers on others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from drayman.plugins.model import Answers, ClaimRef, Removals


class NotRegisteredError(Exception):
    """A driver that has devices of a claim is not on the node, or not yet."""


class Preparer(Protocol):
    """Calls drivers. Both raise NotRegisteredError, and CallError if a driver does not answer."""

    async def prepare(self, driver: str, claims: Sequence[ClaimRef]) -> Answers:
        """Every claim by uid. One that is prepared already is answered the same again."""

    async def unprepare(self, driver: str, claims: Sequence[ClaimRef]) -> Removals:
        """Every claim by uid. One that is not known is not an error."""
