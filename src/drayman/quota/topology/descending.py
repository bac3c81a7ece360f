"""From domains of a wide level down to the lowest ones.

Down to the level at which slices have to be complete, only the number of domains matters: whatever is chosen one level below, out of all
domains chosen so far, holds as many slices. From there on, each domain passes on what it got to those within it, in whole units of the
finer level (`Wish.grain`).
"""

from __future__ import annotations

from collections.abc import Sequence

from drayman.quota.topology.capacity import Capacity
from drayman.quota.topology.choosing import Choice, Share
from drayman.quota.topology.wishes import Wish


def descended(
    capacity: Capacity, wish: Wish, choice: Choice, shares: Sequence[Share]
) -> list[Share]:
    """What each lowest domain gets if wider ones, all of one level, get these."""
    found = list(shares)
    while found and len(found[0].domain) <= capacity.lowest:
        level = len(found[0].domain) - 1
        if level < wish.slices.level:
            found = _together(capacity, choice, found)
        else:
            ratio = wish.grain(level) // wish.grain(level + 1)
            found = [
                below
                for share in found
                for below in _together(
                    capacity, choice, [Share(share.domain, share.units * ratio, share.leads)]
                )
            ]
    return found


def _together(capacity: Capacity, choice: Choice, shares: Sequence[Share]) -> list[Share]:
    """The domains of the next finer level that get what these have together."""
    within = [child for share in shares for child in capacity.tree.children(share.domain)]
    units = sum(share.units for share in shares)
    found = choice.several(within, units, leads=any(share.leads for share in shares))
    if found is None:
        raise AssertionError("domains hold what was counted for the domain that they are in")
    return found
