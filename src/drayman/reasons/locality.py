"""Why no domain holds a gang: what each domain of the required level holds, and what is in the way.

Everything here is counted (`placement.domains.rooms`), and a count is never too low. If some domain holds the gang by what is counted,
there is nothing to be said here: then the search for nodes and devices has refused it, and has its own reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.api.struct import ApiStruct
from drayman.placement.domains.choosing import Request, choose, slices_in
from drayman.placement.domains.rooms import Amounts, Rooms, holds
from drayman.placement.domains.tree import WHOLE, DomainTree
from drayman.reasons.reason import Outlook
from drayman.reasons.wording import and_list, counted
from drayman.topology import Level, Path

_MOST_NAMED: Final = 3


class DomainShort(ApiStruct):
    """A domain and how much of the gang it holds."""

    domain: str
    holds: tuple[int, ...]
    """Of each kind of pods; or slices, where the gang comes in slices."""


class LocalityRefusal(ApiStruct, kw_only=True):
    """Why no domain of a level holds a gang."""

    level: str
    """What a domain of it is called: rack. Empty for the whole cluster."""
    key: str
    """The label or attribute. Empty for the whole cluster."""
    wanted: tuple[int, ...]
    """How many of each kind are to be placed together; or slices."""
    domains: tuple[DomainShort, ...]
    """Those that hold the most come first. Where members run already, only their domains count."""
    lacking: int
    """How many nodes have no value for the level, and are therefore in no domain of it."""
    runs_in: tuple[str, ...]
    """The domains in which members run already."""
    outlook: str
    """What to expect from waiting: never, not now, not here."""
    sentence: str


def locality_refusal(
    rooms: Rooms,
    request: Request,
    numbers: Sequence[int],
    *,
    empty: Rooms | None = None,
    names: Sequence[str] = (),
) -> LocalityRefusal | None:
    """Why no domain holds the gang; None if that is not so by what is counted.

    `numbers` are the pods of each kind and `names` what they are called, where there are several kinds. `empty` is what the domains
    would hold with nothing in use: without it, nothing is said to be impossible.
    """
    choice = choose(rooms, request)
    if any(True for _ in choice) or choice.gave_up:
        return None
    return _Refused(rooms, request, tuple(numbers), empty, tuple(names)).refusal()


class _Refused:
    def __init__(
        self,
        rooms: Rooms,
        request: Request,
        numbers: Amounts,
        empty: Rooms | None,
        names: tuple[str, ...],
    ) -> None:
        self._rooms = rooms
        self._tree = rooms.tree
        self._request = request
        self._empty = empty
        self._names = names if len(numbers) > 1 else ()
        self._slices = slices_in(request)
        self._wanted = numbers if self._slices is None else (self._slices[1],)
        self._homes = self._required_domains()

    def refusal(self) -> LocalityRefusal:
        required = self._request.required
        level = None if required is None else self._tree.hierarchy.levels[required]
        domains = sorted(
            ((self._held(path), path) for path in self._homes),
            key=lambda item: (tuple(-number for number in item[0]), item[1]),
        )
        short = tuple(
            DomainShort(domain=self._tree.title(path), holds=held) for held, path in domains
        )
        lacking = 0 if required is None else self._tree.lacking(required)
        return LocalityRefusal(
            level="" if level is None else level.title,
            key="" if level is None else level.key,
            wanted=self._wanted,
            domains=short,
            lacking=lacking,
            runs_in=tuple(self._tree.title(path) for path in self._pinned()),
            outlook=self._outlook().value,
            sentence=self._sentence(short, lacking),
        )

    def _required_domains(self) -> tuple[Path, ...]:
        required = self._request.required
        if required is None:
            return (WHOLE,)
        return self._pinned() or self._tree.domains(required)

    def _pinned(self) -> tuple[Path, ...]:
        """The domains of the required level in which members run."""
        required = self._request.required
        if required is None:
            return ()
        found = (leaf[: required + 1] for leaf in self._request.pinned if leaf[required])
        return tuple(dict.fromkeys(found))

    def _held(self, home: Path, rooms: Rooms | None = None) -> tuple[int, ...]:
        """How many of each kind a domain holds, or how many slices; no more than are wanted."""
        rooms = rooms or self._rooms
        if self._slices is None:
            room = rooms.of(home)
        else:
            part, number = self._slices
            level = len(home) - 1 if part.required is None else part.required
            homes = rooms.tree.domains(level, home) if level >= len(home) else (home,)
            room = (min(number, sum(_times(rooms.of(path), part.need) for path in homes)),)
        return tuple(min(have, want) for have, want in zip(room, self._wanted, strict=False))

    def _outlook(self) -> Outlook:
        if self._empty is not None and not any(
            holds(self._held(home, self._empty), self._wanted)
            and holds(self._empty.of(home), self._request.need)
            for home in self._homes
        ):
            return Outlook.NEVER
        enough = holds(self._rooms.of(WHOLE), self._request.need)
        return Outlook.NOT_HERE if enough else Outlook.NOT_NOW

    # Words.

    def _sentence(self, short: Sequence[DomainShort], lacking: int) -> str:
        required = self._request.required
        if required is None:
            is_short = short[0].holds != self._wanted
            pods = " pods" if is_short and self._slices is None and len(self._wanted) == 1 else ""
            return f"{self._domain(short[0], 'The cluster')}{pods}."
        level = self._tree.hierarchy.levels[required]
        pinned = self._pinned()
        if len(pinned) > 1:
            places = and_list([self._tree.title(path) for path in pinned])
            return f"Members run in {places}, and all of them have to be in one {level.title}."
        if pinned:
            held = self._domain(short[0], "which")
            return f"Members run in {short[0].domain}, {held} that are missing."
        lack = _lack(lacking, self._tree, level)
        if not short:
            return f"There is no {level.title}: {lack or 'the cluster has no nodes'}."
        named = [self._domain(each) for each in short[:_MOST_NAMED]]
        if rest := short[_MOST_NAMED:]:
            hold = "holds" if len(rest) == 1 else "hold"
            most = f"{self._of(rest[0].holds)} or less" if any(rest[0].holds) else "none"
            named.append(f"{len(rest):,} more {hold} {most}")
        listed = ", ".join(named)
        return f"{listed[:1].upper()}{listed[1:]}{f'; {lack}' if lack else ''}."

    def _domain(self, short: DomainShort, name: str = "") -> str:
        """Rack r1 holds 3 of 4; and if that is not the problem, what is."""
        subject = name or short.domain
        if short.holds != self._wanted:
            return f"{subject} holds {self._of(short.holds)}"
        if self._request.parts:
            return f"{subject} has room for all, but not for each part in one domain of its level"
        return f"{subject} has room for each kind of pods, but not for all at the same time"

    def _of(self, held: Amounts) -> str:
        """3 of 4; or that of each kind of which there is not enough."""
        if self._slices is not None:
            size = counted(self._slices[0].need[0], "pod")
            return f"{held[0]} of {counted(self._wanted[0], 'slice')} of {size}"
        most = "" if self._rooms.is_exact or len(held) > 1 else "at most "
        each = zip(held, self._wanted, self._names or [""] * len(held), strict=True)
        return and_list(
            [f"{most}{have} of {want} {name}".rstrip() for have, want, name in each if have < want]
        )


def _lack(nodes: int, tree: DomainTree, level: Level) -> str:
    """2 nodes have no label topology.kubernetes.io/rack."""
    if not nodes:
        return ""
    what = f"{level.source} {level.key}"
    if tree.hierarchy.needs_all and len(tree.hierarchy.levels) > 1:
        what = "value for each level of the topology"
    if nodes == len(tree):
        return f"no node has {'a' if what.startswith('value') else 'the'} {what}"
    return f"{counted(nodes, 'node')} {'has' if nodes == 1 else 'have'} no {what}"


def _times(room: Amounts, need: Amounts) -> int:
    """How often a need fits into a room."""
    return min([have // want for have, want in zip(room, need, strict=True) if want], default=0)
