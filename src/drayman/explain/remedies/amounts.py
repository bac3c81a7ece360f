"""Asking for less: fewer devices, or less of what one can give. The most that fits is found by bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final, TypeVar

from drayman.api.quantity import Quantity
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Ask, Case, ClaimText, or_else
from drayman.explain.remedies.patching import cut, put
from drayman.inventory.device import Amount

_ALL: Final = "All"
_EXACT: Final = "ExactCount"
_MOST_OF_A_CLAIM: Final = 32
_MOST_NODES: Final = 32
"""Nodes whose devices are looked at for amounts that they could give."""

V = TypeVar("V")


def lower_counts(case: Case) -> Iterator[Remedy]:
    """The most devices that a request can have; if no single one is enough, the most that all of a claim can have."""
    for written in case.claim_texts:
        asks = [a for a in written.asks() if a.spec.allocation_mode != _ALL and a.spec.count > 1]
        singly = (_best(range(1, a.spec.count), partial(_counted, case, written, a)) for a in asks)
        most = max((ask.spec.count for ask in asks), default=1) if len(asks) > 1 else 1
        together = _best(range(1, most), partial(_all_counted, case, written, asks))
        yield from or_else(chain.from_iterable(singly), together)


def fixed_counts(case: Case) -> Iterator[Remedy]:
    """A number of devices for requests that want all devices, of which some are not available."""
    for written in case.claim_texts:
        for ask in written.asks():
            if ask.spec.allocation_mode == _ALL:
                counts = range(1, _MOST_OF_A_CLAIM + 1)
                yield from _best(counts, partial(_fixed, case, written, ask))


def lower_capacities(case: Case) -> Iterator[Remedy]:
    """The most of a capacity that some device can give, or none of a capacity that no device has."""
    for written in case.claim_texts:
        for ask in written.asks():
            wanted = {} if ask.spec.capacity is None else ask.spec.capacity.requests
            for name, quantity in wanted.items():
                offered = _offered(case, name)
                amounts = [a for a in offered if 0 < a < quantity.amount]
                yield from _best(amounts, partial(_with_capacity, case, written, ask, name))
                if not offered:
                    sentence = f"do not ask for {name} in {written.naming(ask)}"
                    step = cut(*ask.path, "capacity", "requests", name)
                    yield from case.with_spec(written, sentence, step)


def _best(values: Sequence[V], attempt: Callable[[V], Iterator[Remedy]]) -> Iterator[Remedy]:
    """The result for the last of the ascending values that helps. If one helps, so do those before it."""
    low, high = 0, len(values)
    best = next(attempt(values[0]), None) if values else None
    if best is None:
        return
    while high - low > 1:
        middle = (low + high) // 2
        found = next(attempt(values[middle]), None)
        if found is None:
            high = middle
        else:
            low, best = middle, found
    yield best


def _counted(case: Case, written: ClaimText, ask: Ask, count: int) -> Iterator[Remedy]:
    sentence = f"ask for {count} instead of {ask.spec.count} in {written.naming(ask)}"
    return case.with_spec(written, sentence, put(count, *ask.path, "count"))


def _all_counted(
    case: Case, written: ClaimText, asks: Sequence[Ask], count: int
) -> Iterator[Remedy]:
    names = ", ".join(ask.name for ask in asks)
    sentence = f"ask for at most {count} in each of the requests {names} of {written.title}"
    steps = (put(min(count, ask.spec.count), *ask.path, "count") for ask in asks)
    return case.with_spec(written, sentence, *steps)


def _fixed(case: Case, written: ClaimText, ask: Ask, count: int) -> Iterator[Remedy]:
    sentence = f"ask for {count} instead of all in {written.naming(ask)}"
    mode = put(_EXACT, *ask.path, "allocationMode")
    return case.with_spec(written, sentence, mode, put(count, *ask.path, "count"))


def _with_capacity(
    case: Case, written: ClaimText, ask: Ask, name: str, amount: Amount
) -> Iterator[Remedy]:
    assert ask.spec.capacity is not None
    asked = ask.spec.capacity.requests[name]
    less = str(Quantity(amount, asked.format))
    sentence = f"ask for {less} instead of {asked} of {name} in {written.naming(ask)}"
    return case.with_spec(written, sentence, put(less, *ask.path, "capacity", "requests", name))


def _offered(case: Case, name: str) -> list[Amount]:
    """What is left of a capacity on devices of the nearest nodes, ascending."""
    found: set[Amount] = set()
    for node in islice(case.nodes, _MOST_NODES):
        view = case.state.inventory.view(node.node, case.state.ledger)
        for kind, left, _ in view.usage.capacity_groups:
            capacities = view.hardware.capacity_kinds[kind]
            found.update(
                amount
                for capacity, amount in zip(capacities, left, strict=True)
                if capacity.name == name
            )
    return sorted(found)
