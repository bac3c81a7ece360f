"""Upstream's search, literally: depth first, in order, errors included, nothing clever.

Two of upstream's bugs are not here because the board compares with all devices placed (distinct values) and forgets nothing
(common values of lists). The third, admin access blocking later ordinary requests, only loses solutions: the search runs
with it first, so that the answer is upstream's where upstream has one, and without it where upstream finds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from oracle.board import Board, Entry
from oracle.brute import TooLarge
from oracle.derived import assemble
from oracle.model import MAX_RESULTS, Alternative, Model
from oracle.nodes import JsonObject


class Fatal(Exception):
    """An error that ends the whole attempt."""


class TooMany(Exception):
    """The claim would get more than 32 devices: upstream's signal to stop trying other devices."""


@dataclass(slots=True)
class Answer:
    """What the search says, in the words of the result lines."""

    outcome: str
    results: list[JsonObject] = field(default_factory=list)
    error: str = ""
    error_scope: str = ""


def first_fit(problem: JsonObject, budget: int = 200_000) -> Answer:
    """The answer of the literal search."""
    model = Model(problem)
    try:
        prepare(model)
        search = _Search(model, admin_blocks=True, budget=budget)
        if search.claim(0):
            return search.answer()
    except Fatal as error:
        return Answer("error", error=str(error), error_scope="fatal")
    try:
        search = _Search(model, admin_blocks=False, budget=budget)
        if _has_admin(model) and search.claim(0):
            return search.answer()
    except Fatal:
        pass  # Upstream found nothing before it could get here, and that is the answer.
    if any(pool.state == "invalid" for pool in model.pools):
        return Answer("error", error="invalid pools", error_scope="node")
    return Answer("unallocatable")


def prepare(model: Model) -> None:
    """Everything that is an error before the search starts."""
    for claim in model.claims:
        for constraint in claim.constraints:
            if constraint.attribute is None:
                raise Fatal("empty constraint")
        least = 0
        for request in claim.requests:
            if request.listed and not model.on("DRAPrioritizedList"):
                raise Fatal(f"{request.name}: firstAvailable is off")
            for choice in request.choices:
                _prepare_choice(model, choice)
            least += min(model.number(choice) for choice in request.choices)
        if least > MAX_RESULTS:
            raise Fatal(f"{least} devices are more than {MAX_RESULTS}")


def _prepare_choice(model: Model, choice: Alternative) -> None:
    if choice.spec.get("capacity") is not None and not model.on("DRAConsumableCapacity"):
        raise Fatal(f"{choice.name}: capacity requests are off")
    if choice.spec.get("adminAccess") is not None and not model.on("DRAAdminAccess"):
        raise Fatal(f"{choice.name}: admin access is off")
    if choice.spec.get("deviceClassName") not in model.classes:
        raise Fatal(f"{choice.name}: unknown class")
    if choice.matching is None:
        raise Fatal(f"{choice.name}: a selector is not CEL")
    if choice.mode not in ("All", "ExactCount"):
        raise Fatal(f"{choice.name}: unknown allocation mode")
    if choice.mode == "All":
        if any(pool.state != "usable" for pool in model.pools):
            raise Fatal(f"{choice.name}: wants all devices and a pool is not usable")
        if any(not model.hidden(model.devices[index]) for index in choice.failing):
            raise Fatal(f"{choice.name}: a selector fails")


def _has_admin(model: Model) -> bool:
    return any(
        choice.admin
        for claim in model.claims
        for request in claim.requests
        for choice in request.choices
    )


class _Search:
    def __init__(self, model: Model, *, admin_blocks: bool, budget: int) -> None:
        self.model = model
        self.board = Board(model, admin_blocks)
        self.chosen: dict[tuple[int, int], int] = {}
        self._ticks = count()
        self._budget = budget

    def answer(self) -> Answer:
        chosen = [
            [self.chosen[number, request] for request in range(len(claim.requests))]
            for number, claim in enumerate(self.model.claims)
        ]
        return Answer("allocated", assemble(self.model, self.board.entries, chosen))

    def claim(self, claim: int) -> bool:
        return claim == len(self.model.claims) or self.request(claim, 0)

    def request(self, claim: int, request: int) -> bool:
        requests = self.model.claims[claim].requests
        if request == len(requests):
            try:
                return self.claim(claim + 1)
            except TooMany:
                return False
        if not requests[request].listed:
            self.chosen[claim, request] = 0
            return self.device(claim, request, requests[request].choices[0], 0, 0)
        over = 0
        for index, choice in enumerate(requests[request].choices):
            self.chosen[claim, request] = index
            try:
                if self.device(claim, request, choice, 0, 0):
                    return True
            except TooMany:
                over += 1
        if over == len(requests[request].choices):
            raise TooMany
        return False

    def device(self, claim: int, request: int, choice: Alternative, k: int, start: int) -> bool:
        if next(self._ticks) > self._budget:
            raise TooLarge
        need = self.model.number(choice)
        if choice.mode == "All" and need == 0:
            return False
        if k == need:
            return self.request(claim, request + 1)
        if sum(entry.claim == claim for entry in self.board.entries) + need - k > MAX_RESULTS:
            raise TooMany
        if choice.mode == "All":
            return self._take_all(claim, request, choice, k)
        for index in range(start, len(self.model.devices)):
            entry = Entry(claim, request, choice, index)
            usable = self._selectable(entry) and self.board.judge(entry) == "ok"
            if usable and self._with(entry, k, index + 1):
                return True
        return False

    def _take_all(self, claim: int, request: int, choice: Alternative, k: int) -> bool:
        entry = Entry(claim, request, choice, self.model.all_devices(choice)[k])
        verdict = self.board.judge(entry)
        if verdict == "constraints":
            raise Fatal(f"{choice.name}: a constraint keeps a device from `All`")
        return verdict == "ok" and self._with(entry, k, 0)

    def _with(self, entry: Entry, k: int, start: int) -> bool:
        """Go on with the entry placed; give it back unless that led to a solution."""
        self.board.entries.append(entry)
        found = False
        try:
            found = self.device(entry.claim, entry.request, entry.choice, k + 1, start)
        finally:
            if not found:
                self.board.entries.pop()
        return found

    def _selectable(self, entry: Entry) -> bool:
        """Selectors are looked at for free devices only, and fail when they are looked at."""
        if self.board.in_use(entry) or self.model.hidden(self.model.devices[entry.device]):
            return False
        if entry.device in entry.choice.failing:
            raise Fatal(
                f"{entry.choice.name}: a selector fails on {self.model.devices[entry.device].id}"
            )
        return self.model.eligible(entry.choice, entry.device)
