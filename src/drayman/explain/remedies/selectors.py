"""Selectors that ask for too much: drop one of several conditions, or a whole selector."""

from __future__ import annotations

from collections.abc import Iterator

from drayman.api.resource import DeviceSelector
from drayman.explain.answer import Remedy
from drayman.explain.conditions import conditions_of
from drayman.explain.remedies.case import Ask, Case, Written
from drayman.explain.remedies.patching import cut, put


def without_conditions(case: Case) -> Iterator[Remedy]:
    """The smallest parts of selectors without which the pod fits."""
    for written in case.written:
        for ask in written.asks():
            helped = False
            for index in range(len(ask.spec.selectors)):
                for found in _without_part(case, written, ask, index):
                    helped = True
                    yield found
            if not helped and len(ask.spec.selectors) > 1:
                yield from _without_all(case, written, ask)


def _without_part(case: Case, written: Written, ask: Ask, index: int) -> Iterator[Remedy]:
    expression = _text(ask.spec.selectors[index])
    parts = [part.text for part in conditions_of(expression)]
    helped = False
    for left_out in range(len(parts) if len(parts) > 1 else 0):
        rest = " && ".join(part for n, part in enumerate(parts) if n != left_out)
        sentence = f"leave `{parts[left_out]}` out of the selector of {written.naming(ask)}"
        patch = (put(rest, *ask.path, "selectors", index, "cel", "expression"),)
        found = case.with_spec(written, sentence, patch)
        if found is not None:
            helped = True
            yield found
    if helped:
        return
    sentence = f"drop the selector `{expression}` of {written.naming(ask)}"
    found = case.with_spec(written, sentence, (cut(*ask.path, "selectors", index),))
    if found is not None:
        yield found


def _without_all(case: Case, written: Written, ask: Ask) -> Iterator[Remedy]:
    sentence = f"drop all {len(ask.spec.selectors)} selectors of {written.naming(ask)}"
    found = case.with_spec(written, sentence, (cut(*ask.path, "selectors"),))
    if found is not None:
        yield found


def _text(selector: DeviceSelector) -> str:
    return "" if selector.cel is None else selector.cel.expression
