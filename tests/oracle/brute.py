"""All valid allocations of a small problem, by trying everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from oracle.board import Board, Entry
from oracle.model import MAX_RESULTS, Alternative, Model

Choices = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """A valid allocation: its entries in order, and the alternative of every request by claim."""

    entries: tuple[Entry, ...]
    chosen: Choices


class TooLarge(Exception):
    """The problem is not small: enumeration was given up."""


class Enumerator:
    """Walks all placements depth first; `budget` bounds the number of placements tried."""

    def __init__(self, model: Model, budget: int = 200_000) -> None:
        self.model = model
        self.board = Board(model)
        self.chosen: list[list[int]] = [[] for _ in model.claims]
        self._ticks = count()
        self._budget = budget

    def placements(self) -> Iterator[Placement]:
        """Every valid allocation, each once."""
        return self._claim(0)

    def _claim(self, claim: int) -> Iterator[Placement]:
        if claim == len(self.model.claims):
            yield Placement(tuple(self.board.entries), tuple(map(tuple, self.chosen)))
        else:
            yield from self._request(claim, 0)

    def _request(self, claim: int, request: int) -> Iterator[Placement]:
        requests = self.model.claims[claim].requests
        if request == len(requests):
            yield from self._claim(claim + 1)
            return
        for index, choice in enumerate(requests[request].choices):
            self.chosen[claim].append(index)
            yield from self._fill(claim, request, choice)
            self.chosen[claim].pop()

    def _fill(self, claim: int, request: int, choice: Alternative) -> Iterator[Placement]:
        menu = [i for i in range(len(self.model.devices)) if self.model.eligible(choice, i)]
        need = self.model.number(choice)
        if choice.mode == "All":
            menu = self.model.all_devices(choice)
            if not menu:
                return
        if need <= min(len(menu), MAX_RESULTS):
            yield from self._pick(claim, request, choice, menu, need)

    def _pick(
        self, claim: int, request: int, choice: Alternative, menu: list[int], need: int
    ) -> Iterator[Placement]:
        if need == 0:
            yield from self._request(claim, request + 1)
            return
        for position in range(len(menu) - need + 1):
            if next(self._ticks) > self._budget:
                raise TooLarge
            entry = Entry(claim, request, choice, menu[position])
            if self.board.full(claim) or self.board.judge(entry) != "ok":
                continue
            self.board.entries.append(entry)
            yield from self._pick(claim, request, choice, menu[position + 1 :], need - 1)
            self.board.entries.pop()


def exists(model: Model, budget: int = 200_000) -> bool:
    """Whether any valid allocation exists."""
    return next(Enumerator(model, budget).placements(), None) is not None
