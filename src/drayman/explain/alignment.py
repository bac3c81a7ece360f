"""The alignments that a pod, its claims or their classes state: the level that each reaches, and what else there is.

What a claim with devices has reached is what its annotation says, written when the devices were chosen. Which levels the nodes would offer
now is found out like the choice of a node (`choice`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from drayman.allocator import Quality, ReachedLevel
from drayman.api.alignment import Ladder
from drayman.api.resource import ResourceClaim
from drayman.explain.answer import AlignmentChoice, StatedAlignment
from drayman.placement.alignment import AlignmentNote, note_on, notes_of
from drayman.placement.placing import NodeStanding


def planned_alignments(
    claims: Sequence[ResourceClaim],
    levels: Sequence[ReachedLevel],
    standings: Sequence[NodeStanding],
) -> tuple[StatedAlignment, ...]:
    """Of claims that would be allocated together, with the levels that they would reach."""
    offers = _offers(levels, standings)
    found = []
    for index, claim in enumerate(claims):
        notes = iter(notes_of(claim, index, levels))
        found += [
            _described(claim, next(notes), reached.stated.ladder, offer)
            for reached, offer in zip(levels, offers, strict=True)
            if index in reached.stated.claims
        ]
    return tuple(found)


def held_alignments(
    claims: Sequence[ResourceClaim],
    levels: Sequence[ReachedLevel] = (),
    standings: Sequence[NodeStanding] = (),
) -> tuple[StatedAlignment, ...]:
    """Of claims that have devices. `levels` are those that the claims would reach if they were allocated now, and where."""
    offers = _offers(levels, standings)
    found = []
    for index, claim in enumerate(claims):
        now = [
            (str(reached.stated.ladder), offer)
            for reached, offer in zip(levels, offers, strict=True)
            if index in reached.stated.claims
        ]
        for number, note in enumerate(note_on(claim)):
            is_known = number < len(now) and now[number][0] == note.levels
            offer = now[number][1] if is_known else Counter[int]()
            found.append(_described(claim, note, note.ladder, offer))
    return tuple(found)


def _offers(
    levels: Sequence[ReachedLevel], standings: Sequence[NodeStanding]
) -> list[Counter[int]]:
    """By stated alignment, on how many nodes each rung is the best that can be reached."""
    offers: list[Counter[int]] = [Counter() for _ in levels]
    for standing in standings:
        for part in standing.quality:
            if isinstance(part, Quality):
                for offer, rung in zip(offers, part.cost.rungs, strict=False):
                    offer[rung] += 1
    return offers


def _described(
    claim: ResourceClaim, note: AlignmentNote, ladder: Ladder, offer: Counter[int]
) -> StatedAlignment:
    return StatedAlignment(
        claim=claim.metadata.name,
        requests=note.requests,
        wanted_by=note.wanted_by,
        level=note.level,
        score=note.score,
        choices=tuple(
            AlignmentChoice(level=str(rung), score=ladder.score(index), nodes=offer[index])
            for index, rung in enumerate(ladder.rungs)
        ),
    )
