"""What a claim says about the alignment that its devices have reached, in the annotation `drayman.dev/alignment`.

It is written together with the devices and goes with them. Other programs leave annotations alone that they do not know, and the status of
a claim has no place for it: its conditions belong to the drivers. A claim about which nothing was stated has no such annotation.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from drayman.allocator import ClaimPlan, ReachedLevel
from drayman.api.alignment import ALIGNMENT, AlignmentError, Ladder, ladder_of
from drayman.api.resource import ResourceClaim
from drayman.api.struct import ApiStruct


class AlignmentNote(ApiStruct):
    """One group of requests, and what has become of it."""

    requests: tuple[str, ...] = ()
    """Those of the claim that are in the group."""
    level: str = ""
    """What was reached."""
    score: int = 0
    """From 100 for the first of the levels to 0 for the last of a wish."""
    levels: str = ""
    """What was stated: the alternatives, best first."""
    wanted_by: str = ""
    """`claim`, `pod` or `class NAME`."""

    @property
    def ladder(self) -> Ladder:
        """Raises AlignmentError."""
        return ladder_of(self.levels.split(">"))


def noted(planned: Sequence[ClaimPlan], levels: Sequence[ReachedLevel]) -> Sequence[ClaimPlan]:
    """The plans of claims, with what is to be said on each claim. What an earlier allocation has left there goes."""
    if not levels and not any(ALIGNMENT in item.claim.metadata.annotations for item in planned):
        return planned
    return [replace(item, claim=_noted(item, index, levels)) for index, item in enumerate(planned)]


def _noted(item: ClaimPlan, index: int, levels: Sequence[ReachedLevel]) -> ResourceClaim:
    notes = notes_of(item.claim, index, levels)
    if not notes:
        return without_note(item.claim)
    metadata = item.claim.metadata
    text = msgspec.json.encode(notes).decode()
    return replace(
        item.claim,
        metadata=replace(metadata, annotations={**metadata.annotations, ALIGNMENT: text}),
    )


def notes_of(
    claim: ResourceClaim, index: int, levels: Sequence[ReachedLevel]
) -> tuple[AlignmentNote, ...]:
    """What there is to say about the claim at this position among those that were allocated together."""
    found = []
    for reached in levels:
        stated = reached.stated
        if index in stated.claims:
            names = [request.name for request in claim.spec.devices.requests]
            given = [name for about, name in stated.names if about == index]
            found.append(
                AlignmentNote(
                    requests=tuple(given or names),
                    level=reached.level,
                    score=reached.score,
                    levels=str(stated.ladder),
                    wanted_by=stated.origin,
                )
            )
    return tuple(found)


def note_on(claim: ResourceClaim) -> tuple[AlignmentNote, ...]:
    """What a claim says about its alignment; nothing if it says nothing that can be read."""
    text = claim.metadata.annotations.get(ALIGNMENT)
    if text is None or claim.status.allocation is None:
        return ()
    try:
        notes = tuple(msgspec.json.decode(text, type=list[AlignmentNote]))
        return notes if all(note.ladder for note in notes) else ()
    except (msgspec.DecodeError, AlignmentError):
        return ()  # another program has written it


def without_note(claim: ResourceClaim) -> ResourceClaim:
    """The claim without what is said about devices that it no longer has."""
    metadata = claim.metadata
    if ALIGNMENT not in metadata.annotations:
        return claim
    rest = {name: text for name, text in metadata.annotations.items() if name != ALIGNMENT}
    return replace(claim, metadata=replace(metadata, annotations=rest))
