"""Stated alignments that cannot be reached: the same as a wish instead of a requirement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drayman.api.alignment import ALIGN, DRIVER, AlignmentError, StatedGroup, stated_groups
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Case, ClaimText, Rephrasing
from drayman.explain.remedies.patching import Step, patch_of, patched, put

_TEMPLATE = "ResourceClaimTemplate"


def softened_alignments(case: Case) -> Iterator[Remedy]:
    """Whatever states a required level may also put up with less."""
    softer = _softened(case.pod.metadata.annotations)
    if softer is not None:
        words = f"let {ALIGN} of the pod end in any, so that it is only preferred"
        yield from case.with_pod(words, _annotation(softer, "metadata"))
    for written in case.claim_texts:
        yield from _softened_annotation(case, written)
        yield from _softened_config(case, written)


def _softened_annotation(case: Case, written: ClaimText) -> Iterator[Remedy]:
    softer = _softened(case.demand.claims[written.positions[0]].metadata.annotations)
    if softer is None:
        return
    claims = list(case.demand.claims)
    for position in written.positions:
        claims[position] = patched(claims[position], (_annotation(softer, "metadata"),))
    namespace = case.pod.metadata.namespace
    operations = tuple(
        patch_of(kind, name, (_annotation(softer, *_where(kind)),), namespace)
        for kind, name in written.places
    )
    words = f"let {ALIGN} of {written.title} end in any, so that it is only preferred"
    yield from case.tried(Rephrasing(words, operations, case.pod, tuple(claims)))


def _where(kind: str) -> tuple[str, ...]:
    """Where the annotations of a claim are written."""
    return ("spec", "metadata") if kind == _TEMPLATE else ("metadata",)


def _annotation(text: str, *where: str) -> Step:
    return put(text, *where, "annotations", ALIGN)


def _softened_config(case: Case, written: ClaimText) -> Iterator[Remedy]:
    for index, config in enumerate(written.spec.devices.config):
        opaque = config.opaque
        if opaque is None or opaque.driver != DRIVER or not isinstance(opaque.parameters, Mapping):
            continue
        levels = opaque.parameters.get("levels")
        if isinstance(levels, list) and levels and levels[-1] != "any":
            words = f"add any to the levels of AlignmentPolicy in {written.title}"
            step = put(
                "any", "devices", "config", index, "opaque", "parameters", "levels", len(levels)
            )
            yield from case.with_spec(written, words, step)


def _softened(annotations: Mapping[str, str]) -> str | None:
    """What an annotation would say if nothing were required; None if nothing is, or if it makes no sense."""
    text = annotations.get(ALIGN)
    if text is None:
        return None
    try:
        groups = stated_groups(text)
    except AlignmentError:
        return None
    if not any(group.ladder.is_required for group in groups):
        return None
    return "; ".join(map(_as_wish, groups))


def _as_wish(group: StatedGroup) -> str:
    ladder = f"{group.ladder} > any" if group.ladder.is_required else str(group.ladder)
    return f"{', '.join(group.requests)}: {ladder}" if group.requests else ladder
