"""Which nodes have to be cleared for a gang, by counting: what they hold of it as they are, and if everybody who may go is gone."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

from drayman.placement.domains.rooms import Amounts
from drayman.placement.parties import Party, earliest_start

Level = tuple[bool, int]
"""How bad it is that a party goes: whether a budget protects it, and its priority."""


class Counts:
    """What nodes hold of a gang as they are, and if everybody who may go is gone."""

    def __init__(
        self,
        parties: Sequence[Party],
        homes: Sequence[tuple[str, ...]],
        amounts: Callable[[Iterable[Party]], tuple[Mapping[str, Amounts], Amounts] | None],
    ) -> None:
        """`parties` may go, `homes` are the nodes of each place in which the gang could be.

        `amounts` says what each node holds without some of the parties, and what is needed; None if the gang names no level that exists.
        """
        self._parties = parties
        self._homes = homes
        self._amounts = amounts
        self._now: Mapping[str, Amounts] = {}
        self._empty: Mapping[str, Amounts] = {}
        self._need: Amounts = ()

    def first_enough(
        self, steps: Sequence[Level], levels: Mapping[int, Level]
    ) -> Generator[None, None, tuple[int, list[tuple[str, ...]]]]:
        """The first of the steps with which some places hold the gang, by counting, and those places.

        Each count is of the whole cluster: yields between two of them, where a break may be taken.
        """
        counted = self._amounts(())
        if counted is None:
            return 0, []
        self._now, self._need = counted
        low, high = 0, len(steps) - 1
        yield
        homes = self._enough(steps[high], levels)
        found = high
        while homes and low < high:
            yield
            middle = (low + high) // 2
            enough = self._enough(steps[middle], levels)
            if enough:
                homes, high, found = enough, middle, middle
            else:
                low = middle + 1
        if homes:
            yield
            self._enough(steps[found], levels)
        return found, homes

    def _enough(self, step: Level, levels: Mapping[int, Level]) -> list[tuple[str, ...]]:
        gone = [party for party in self._parties if levels[id(party)] <= step]
        counted = self._amounts(gone)
        self._empty = {} if counted is None else counted[0]
        return [home for home in self._homes if self._missing(home, home) <= 0]

    def _missing(self, home: Iterable[str], cleared: Iterable[str]) -> int:
        """How much of what is needed most is missing if some nodes of a place are cleared."""
        clear = set(cleared)
        total = [0] * len(self._need)
        for name in home:
            amounts = (self._empty if name in clear else self._now).get(name, ())
            for index, amount in enumerate(amounts):
                total[index] += amount
        return max((n - t for n, t in zip(self._need, total, strict=True)), default=0)

    def order(
        self, allowed: Sequence[Party], levels: Mapping[int, Level], home: Iterable[str]
    ) -> list[str]:
        """The nodes of a place that can be cleared, those first of which the least is lost for what is gained, and of equals the newest."""
        on_node = by_node(allowed)

        def cost(name: str) -> tuple[bool, Level, float, float, str]:
            parties = on_node[name]
            gain = self._gain(name)
            worst = max(levels[id(party)] for party in parties)
            number = sum(len(party.members) for party in parties)
            newest = -earliest_start(parties)
            return not gain, worst, number / (gain or 1), newest, name

        return sorted((name for name in home if name in on_node), key=cost)

    def fewest(self, order: Sequence[str], home: Iterable[str]) -> int:
        """How many nodes, in this order, have to be cleared at least."""
        total = [0] * len(self._need)
        for name in home:
            for index, amount in enumerate(self._now.get(name, ())):
                total[index] += amount
        for number, name in enumerate(order):
            if all(t >= n for t, n in zip(total, self._need, strict=True)):
                return number
            now = self._now.get(name, (0,) * len(total))
            for index, amount in enumerate(self._empty.get(name, ())):
                total[index] += amount - now[index]
        return len(order)

    def _gain(self, name: str) -> int:
        before = self._now.get(name, ())
        return sum(self._empty.get(name, ())) - sum(before)


def by_node(parties: Iterable[Party]) -> dict[str, list[Party]]:
    found: dict[str, list[Party]] = {}
    for party in parties:
        for name in dict.fromkeys(each.node for each in party.members):
            found.setdefault(name, []).append(party)
    return found
