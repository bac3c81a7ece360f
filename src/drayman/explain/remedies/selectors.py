"""Selectors that ask for too much: drop one of several conditions, or a whole selector."""

from __future__ import annotations

from collections.abc import Iterator

from drayman.explain.answer import Remedy
from drayman.explain.conditions import conditions_of
from drayman.explain.remedies.case import Ask, Case, ClaimText, or_else
from drayman.explain.remedies.patching import cut, put


def without_conditions(case: Case) -> Iterator[Remedy]:
    """The smallest parts of selectors without which the pod fits."""
    for written in case.claim_texts:
        for ask in written.asks():
            yield from or_else(_from_one(case, written, ask), _without_all(case, written, ask))


def _from_one(case: Case, written: ClaimText, ask: Ask) -> Iterator[Remedy]:
    """One selector with a condition less; without it where that does not help."""
    for index, selector in enumerate(ask.spec.selectors):
        expression = "" if selector.cel is None else selector.cel.expression
        path = (*ask.path, "selectors", index)
        sentence = f"drop the selector `{expression}` of {written.naming(ask)}"
        yield from or_else(
            _without_part(case, written, ask, expression, path),
            case.with_spec(written, sentence, cut(*path)),
        )


def _without_part(
    case: Case, written: ClaimText, ask: Ask, expression: str, path: tuple[str | int, ...]
) -> Iterator[Remedy]:
    parts = [part.text for part in conditions_of(expression)]
    for left_out in range(len(parts) if len(parts) > 1 else 0):
        rest = " && ".join(part for n, part in enumerate(parts) if n != left_out)
        sentence = f"leave `{parts[left_out]}` out of the selector of {written.naming(ask)}"
        yield from case.with_spec(written, sentence, put(rest, *path, "cel", "expression"))


def _without_all(case: Case, written: ClaimText, ask: Ask) -> Iterator[Remedy]:
    if len(ask.spec.selectors) > 1:
        sentence = f"drop all {len(ask.spec.selectors)} selectors of {written.naming(ask)}"
        yield from case.with_spec(written, sentence, cut(*ask.path, "selectors"))
