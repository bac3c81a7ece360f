"""Device classes: another one that serves a request, and names that are close to those of classes."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from drayman.api.resource import DeviceClass
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Case
from drayman.explain.remedies.patching import cut, put
from drayman.inventory.bitsets import positions

_ALIKE: Final = 0.6
_MOST_CLASSES: Final = 6
_MOST_NODES: Final = 16
"""How many nodes are inspected for the drivers behind a class."""


def other_classes(case: Case) -> Iterator[Remedy]:
    """Classes that would serve a request: of the same drivers, or of a similar name if its own has no devices."""
    for written in case.claim_texts:
        for ask in written.asks():
            asked = ask.spec.device_class_name
            for name in islice(_candidates(case, asked), _MOST_CLASSES):
                sentence = (
                    f"ask for class {name} instead of {asked or 'none'} in {written.naming(ask)}"
                )
                yield from case.with_spec(
                    written, sentence, put(name, *ask.path, "deviceClassName")
                )


def dropped_alternatives(case: Case) -> Iterator[Remedy]:
    """Alternatives of classes that do not exist: even the last of them keeps a pod from all others."""
    classes = case.state.inventory.classes
    for written in case.claim_texts:
        devices = written.spec.devices
        named = {name for constraint in devices.constraints for name in constraint.requests}
        named |= {name for config in devices.config for name in config.requests}
        for i, request in enumerate(devices.requests):
            for j, sub in enumerate(request.first_available):
                is_missing = sub.device_class_name not in classes
                is_needed = (
                    f"{request.name}/{sub.name}" in named or len(request.first_available) < 2
                )
                if is_needed or not is_missing:
                    continue
                sentence = f"leave out alternative {sub.name} of request {request.name}"
                step = cut("devices", "requests", i, "firstAvailable", j)
                yield from case.with_spec(written, f"{sentence} of {written.title}", step)


def alike(one: str, other: str) -> float:
    """How similar two names are, from 0 to 1. A common domain at the end does not count."""
    first, second = one.lower().split("."), other.lower().split(".")
    while min(len(first), len(second)) > 1 and first[-1] == second[-1]:
        del first[-1], second[-1]
    return SequenceMatcher(None, ".".join(first), ".".join(second), autojunk=False).ratio()


def similar(name: str, others: Iterator[str]) -> list[str]:
    """The names that are similar to a name, the most similar first."""
    scored = sorted((-alike(name, other), other) for other in others if other != name)
    return [other for score, other in scored if -score >= _ALIKE]


def _candidates(case: Case, asked: str) -> list[str]:
    classes = case.state.inventory.classes
    drivers = {name: _drivers(case, each) for name, each in classes.items()}
    wanted = drivers.get(asked, frozenset())
    if not wanted:
        return similar(asked, iter(classes))
    found = [name for name in classes if name != asked and drivers[name] & wanted]
    return sorted(found, key=lambda name: (-alike(asked, name), name))


def _drivers(case: Case, device_class: DeviceClass) -> frozenset[str]:
    """The drivers of devices of a class, on the nearest nodes."""
    texts = [s.cel.expression for s in device_class.spec.selectors if s.cel is not None]
    found: set[str] = set()
    for node in islice(case.nodes, _MOST_NODES):
        hardware = case.state.inventory.view(node.node, case.state.ledger).hardware
        passing, _ = hardware.select(texts)
        found.update(hardware.records[position].id.driver for position in positions(passing))
    return frozenset(found)
