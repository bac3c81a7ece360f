"""Asking for less: fewer devices, or less of what one can give. The most that fits is found by bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from drayman.api.quantity import Quantity
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Ask, Case, Written
from drayman.explain.remedies.patching import Patch, cut, put
from drayman.inventory.device import Amount

_ALL: Final = "All"
_EXACT: Final = "ExactCount"
_MOST_OF_A_CLAIM: Final = 32
_MOST_NODES: Final = 32
"""Nodes whose devices are looked at for amounts that they could give."""

V = TypeVar("V")


def lower_counts(case: Case) -> Iterator[Remedy]:
    """The most devices that a request can have; if no single one is enough, the most that all of a claim can have."""
    for written in case.written:
        asks = [a for a in written.asks() if a.spec.allocation_mode != _ALL and a.spec.count > 1]
        helped = False
        for ask in asks:
            found = _best(range(1, ask.spec.count), _with_count(case, written, ask))
            if found is not None:
                helped = True
                yield found
        if not helped and len(asks) > 1:
            most = max(ask.spec.count for ask in asks)
            found = _best(range(1, most), _with_counts(case, written, asks))
            if found is not None:
                yield found


def fixed_counts(case: Case) -> Iterator[Remedy]:
    """A number of devices for requests that want all devices, of which some are not available."""
    for written in case.written:
        for ask in written.asks():
            if ask.spec.allocation_mode == _ALL:
                counts = range(1, _MOST_OF_A_CLAIM + 1)
                found = _best(counts, _with_number(case, written, ask))
                if found is not None:
                    yield found


def lower_capacities(case: Case) -> Iterator[Remedy]:
    """The most of a capacity that some device can give."""
    for written in case.written:
        for ask in written.asks():
            wanted = {} if ask.spec.capacity is None else ask.spec.capacity.requests
            for name, quantity in wanted.items():
                offered = _offered(case, name)
                amounts = [a for a in offered if 0 < a < quantity.amount]
                found = (
                    _best(amounts, _with_capacity(case, written, ask, name))
                    if offered
                    else _without_capacity(case, written, ask, name)
                )
                if found is not None:
                    yield found


def _best(values: Sequence[V], attempt: Callable[[V], Remedy | None]) -> Remedy | None:
    """The result for the last of the ascending values that helps. If one helps, so do those before it."""
    low, high = 0, len(values)
    best = attempt(values[0]) if values else None
    if best is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        found = attempt(values[middle])
        if found is None:
            high = middle
        else:
            low, best = middle, found
    return best


def _with_count(case: Case, written: Written, ask: Ask) -> Callable[[int], Remedy | None]:
    def attempt(count: int) -> Remedy | None:
        sentence = f"ask for {count} instead of {ask.spec.count} in {written.naming(ask)}"
        return case.with_spec(written, sentence, (put(count, *ask.path, "count"),))

    return attempt


def _with_counts(
    case: Case, written: Written, asks: Sequence[Ask]
) -> Callable[[int], Remedy | None]:
    names = ", ".join(ask.name for ask in asks)

    def attempt(count: int) -> Remedy | None:
        patch: Patch = tuple(put(min(count, ask.spec.count), *ask.path, "count") for ask in asks)
        sentence = f"ask for at most {count} in each of the requests {names} of {written.title}"
        return case.with_spec(written, sentence, patch)

    return attempt


def _with_number(case: Case, written: Written, ask: Ask) -> Callable[[int], Remedy | None]:
    def attempt(count: int) -> Remedy | None:
        patch = (put(_EXACT, *ask.path, "allocationMode"), put(count, *ask.path, "count"))
        sentence = f"ask for {count} instead of all in {written.naming(ask)}"
        return case.with_spec(written, sentence, patch)

    return attempt


def _with_capacity(
    case: Case, written: Written, ask: Ask, name: str
) -> Callable[[Amount], Remedy | None]:
    assert ask.spec.capacity is not None
    asked = ask.spec.capacity.requests[name]

    def attempt(amount: Amount) -> Remedy | None:
        less = str(Quantity(amount, asked.format))
        sentence = f"ask for {less} instead of {asked} of {name} in {written.naming(ask)}"
        return case.with_spec(
            written, sentence, (put(less, *ask.path, "capacity", "requests", name),)
        )

    return attempt


def _without_capacity(case: Case, written: Written, ask: Ask, name: str) -> Remedy | None:
    """For a capacity that no device has."""
    sentence = f"do not ask for {name} in {written.naming(ask)}"
    return case.with_spec(written, sentence, (cut(*ask.path, "capacity", "requests", name),))


def _offered(case: Case, name: str) -> list[Amount]:
    """What is left of a capacity on devices of the nearest nodes, ascending."""
    found: set[Amount] = set()
    for node in islice(case.nodes, _MOST_NODES):
        view = case.state.inventory.view(node.node, case.state.ledger)
        for kind, left, _ in view.capacity_groups:
            capacities = view.hardware.capacity_kinds[kind]
            found.update(
                amount
                for capacity, amount in zip(capacities, left, strict=True)
                if capacity.name == name
            )
    return sorted(found)
