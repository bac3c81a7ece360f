"""Which part of a cluster acts on a kind, and what does not happen if none does.

The API server stores objects of more kinds than anything here acts on: charts bring them, and other tools read them. A client that
creates such an object gets a warning with the answer, unless the part that would have to act is run by someone else.
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
    """The part that would do it: if another cluster's part runs in place of ours, it may."""
    consequence: str
    """The end of a sentence that begins with `is stored, but`."""
    concerns: Callable[[Object], bool] = _always
    """Whether an object expects it."""
    case: str = ""
    """Which objects those are, in words; empty for all."""


@dataclass(frozen=True, slots=True)
class Acting:
    """What acts on a kind."""

    parts: tuple[Part, ...] = ()
    effect: str = ""
    """What happens; for a kind that needs no action, its purpose."""
    gap: Gap | None = None


def by(*parts: Part, effect: str, gap: Gap | None = None) -> Acting:
    """A kind that these parts act on."""
    return Acting(parts, effect, gap)


def data(purpose: str) -> Acting:
    """A kind that nothing has to act on."""
    return Acting(effect=purpose)


def nothing_acts(consequence: str, part: Part = Part.CONTROLLERS) -> Acting:
    """A kind whose acting part is missing here."""
    return Acting(gap=Gap(part, consequence))


UNKNOWN: Final = Acting()
"""For custom resources: software that installed the definition may act on them."""


def warning(
    acting: Acting, kind: str, name: str, obj: Object, running: frozenset[Part]
) -> str | None:
    """The warning for the client that creates an object, with these parts running here."""
    gap = acting.gap
    if gap is None or gap.part not in running or not gap.concerns(obj):
        return None
    return f"{kind} {name} is stored, but {gap.consequence}"
