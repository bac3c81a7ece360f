"""Who acts on a kind, and what does not happen where nobody does.

The API server keeps objects of more kinds than anything here acts on: charts bring them, and tools of others read them. Who creates such
an object is told so, in a warning with the answer, unless the part that would have to act is left to somebody else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from drayman.apiserver.served.strategy import Object


class Part(Enum):
    """A part of a cluster that acts on objects."""

    SERVER = "API server"
    CONTROLLERS = "controllers"
    SCHEDULER = "scheduler"
    NODES = "simulated nodes"


def _always(_obj: Object) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that users of a kind expect and that nothing here does."""

    part: Part
    """Whose work it would be: where another cluster's part runs in place of ours, it may do it."""
    consequence: str
    """The end of a sentence that begins with `is stored, but`."""
    concerns: Callable[[Object], bool] = _always
    """Whether an object expects it."""
    case: str = ""
    """Which objects those are, in words; empty for all."""


@dataclass(frozen=True, slots=True)
class Acting:
    """Who acts on a kind."""

    parts: tuple[Part, ...] = ()
    effect: str = ""
    """What happens; for a kind that nobody has to act on, what it is for."""
    gap: Gap | None = None


def by(*parts: Part, effect: str, gap: Gap | None = None) -> Acting:
    """A kind that these parts act on."""
    return Acting(parts, effect, gap)


def data(purpose: str) -> Acting:
    """A kind that nobody has to act on."""
    return Acting(effect=purpose)


def nobody(consequence: str, part: Part = Part.CONTROLLERS) -> Acting:
    """A kind that a part would have to act on which is not there."""
    return Acting(gap=Gap(part, consequence))


UNKNOWN: Final = Acting()
"""Of custom resources: whoever brought the definition may act on them."""


def warning(
    acting: Acting, kind: str, name: str, obj: Object, running: frozenset[Part]
) -> str | None:
    """What to tell whoever creates an object, with these parts running here."""
    gap = acting.gap
    if gap is None or gap.part not in running or not gap.concerns(obj):
        return None
    return f"{kind} {name} is stored, but {gap.consequence}"
