"""Selectors rewritten wherever they occur: in requests and in classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from drayman.api.resource import DeviceClass, DeviceSelector
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Case, remedy
from drayman.explain.remedies.patching import patch_of, patched, put
from drayman.explain.values import ALL, Correction, Mistake, Rewriting, rewritten


def corrected_values(case: Case, mistakes: Sequence[Mistake]) -> Iterator[Remedy]:
    """Values that devices have in place of values that none has. Where several are wrong in one selector, all are corrected at once."""
    together: dict[str, list[Mistake]] = {}
    for mistake in mistakes:
        if mistake.value.among == ALL:
            together.setdefault(mistake.value.selector, []).append(mistake)
    for selector, members in together.items():
        if len(members) > 1:
            yield from _tried(case, selector, [each.corrections[0] for each in members])
    for mistake in mistakes:
        if len(together.get(mistake.value.selector, ())) < 2:
            yield from _one_by_one(case, mistake)


def _one_by_one(case: Case, mistake: Mistake) -> Iterator[Remedy]:
    for correction in mistake.corrections:
        found = list(_tried(case, mistake.value.selector, [correction]))
        yield from found
        if found and mistake.is_bound:
            return


def _tried(case: Case, selector: str, corrections: Sequence[Correction]) -> Iterator[Remedy]:
    rewriting = rewritten(selector, corrections)
    yield from in_requests(case, rewriting)
    if all(each.is_slip for each in corrections):
        yield from in_classes(case, rewriting)


def in_requests(case: Case, rewriting: Rewriting) -> Iterator[Remedy]:
    """The requests that have the selector, with the other one in its place."""
    for written in case.claim_texts:
        for ask in written.asks():
            for index in _places(ask.spec.selectors, rewriting.before):
                sentence = f"{rewriting.words} in the selector of {written.naming(ask)}"
                path = (*ask.path, "selectors", index, "cel", "expression")
                yield from case.with_spec(written, sentence, put(rewriting.after, *path))


def in_classes(case: Case, rewriting: Rewriting) -> Iterator[Remedy]:
    """The classes of requests that have the selector, with the other one in its place."""
    names = {ask.spec.device_class_name for written in case.claim_texts for ask in written.asks()}
    classes = case.state.inventory.classes
    for device_class in (classes[name] for name in sorted(names) if name in classes):
        for index in islice(_places(device_class.spec.selectors, rewriting.before), 1):
            yield from _in_class(case, device_class, index, rewriting)


def _in_class(
    case: Case, device_class: DeviceClass, index: int, rewriting: Rewriting
) -> Iterator[Remedy]:
    name = device_class.metadata.name
    path = ("spec", "selectors", index, "cel", "expression")
    patch = (put(rewriting.after, *path),)
    with case.state.trial():
        case.state.set_class(patched(device_class, patch))
        fit = case.trials.first_fit(case.demand)
    if fit is not None:
        sentence = f"{rewriting.words} in the selector of class {name}"
        yield remedy(sentence, (patch_of("DeviceClass", name, patch),), fit)


def _places(selectors: Sequence[DeviceSelector], text: str) -> Iterator[int]:
    for index, selector in enumerate(selectors):
        if selector.cel is not None and selector.cel.expression == text:
            yield index
