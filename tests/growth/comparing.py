"""Whether work grows faster than its input: counts at n and 4n items, place by place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from growth.metering import Meter

FACTOR: Final = 4
MOST: Final = 6
"""How many times the work may be at `FACTOR` times the items. Linear work is at 4, with sorting a little more; quadratic is at 16."""
QUADRATIC: Final = 40
"""The same where work may be quadratic, and only more than that is too much: cubic work is at 64."""
SLACK: Final = 4
"""Work for each item that is not looked at: places that do next to nothing with a few items."""

BOUNDED: Final = {
    "drayman.cluster.embedded.objects._Resource.put": "a move of pointers for each object: 1 ms among a million",
    "drayman.apiserver.patching.json_patch._put": "10,000 operations, each of which moves at most 100,000 pointers",
    "drayman.apiserver.patching.json_patch._take": "10,000 operations, each of which moves at most 100,000 pointers",
    "drayman.apiserver.verbs.batch.Batch.list": "a few dozen writes at a time",
}
"""Functions whose work may grow like that, each with what bounds it."""

Work = Callable[[int], Awaitable[None]]
"""What is done with so many items."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A place whose work grows too fast."""

    place: str
    items: tuple[int, ...]
    counts: tuple[int, ...]

    def __str__(self) -> str:
        shown = ", ".join(f"{c} with {n}" for n, c in zip(self.items, self.counts, strict=True))
        return f"{self.place}: {shown} items"


async def counted(meter: Meter, work: Work, items: int) -> Mapping[int, int]:
    meter.reset()
    await work(items)
    return meter.counts()


async def steep(
    meter: Meter, work: Work, items: int, *, lists: int = 1, most: int = MOST
) -> list[Growth]:
    """The places whose work grows more than `most` times, both from n to 4n and from 4n to 16n items.

    The second step is only taken where the first is too large, and compares how much is added: what begins at some size, or ends, does
    not grow like that. `lists` is how many lists of so many items there are.
    """
    few, many = items, items * FACTOR
    before = await counted(meter, work, few)
    after = await counted(meter, work, many)
    suspects = [
        n
        for n, count in after.items()
        if _is_steep(before.get(n, 0), count, many * lists, most)
        and meter.places[n].name not in BOUNDED
    ]
    if not suspects:
        return []
    last_items = many * FACTOR
    last = await counted(meter, work, last_items)
    return [
        Growth(str(meter.places[n]), (few, many, last_items), (before.get(n, 0), after[n], last[n]))
        for n in suspects
        if _is_steep(
            after[n] - before.get(n, 0), last.get(n, 0) - after[n], last_items * lists, most
        )
    ]


def _is_steep(before: int, after: int, items: int, most: int) -> bool:
    return after > most * before and after > SLACK * items


def steep_of(meter: Meter, work: Work, items: int) -> list[Growth]:
    return asyncio.run(steep(meter, work, items))
