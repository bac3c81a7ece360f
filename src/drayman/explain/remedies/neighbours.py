"""Rules between pods that leave no node: affinity, anti-affinity, spreading. A rule dropped, or turned into a preference."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from drayman.api.core import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, PodAffinityTerm
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Case, or_else
from drayman.explain.remedies.patching import cut, put

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def dropped_affinity(case: Case) -> Iterator[Remedy]:
    """Terms of pod affinity and anti-affinity without which the pod fits."""
    affinity = case.pod.spec.affinity
    if affinity is None:
        return
    for name, words, terms in (
        ("podAffinity", "pod affinity", affinity.pod_affinity),
        ("podAntiAffinity", "pod anti-affinity", affinity.pod_anti_affinity),
    ):
        if terms is not None:
            required = terms.required_during_scheduling_ignored_during_execution
            yield from _without_terms(case, name, words, required)


def loosened_spread(case: Case) -> Iterator[Remedy]:
    """Spread constraints that the pod could have as preferences."""
    constraints = case.pod.spec.topology_spread_constraints
    looser = [
        (
            each.topology_key,
            put(SCHEDULE_ANYWAY, "spec", "topologySpreadConstraints", index, "whenUnsatisfiable"),
        )
        for index, each in enumerate(constraints)
        if each.when_unsatisfiable == DO_NOT_SCHEDULE
    ]
    singly = (
        case.with_pod(
            f"let the pod be spread over {key} only where possible (ScheduleAnyway)", step
        )
        for key, step in looser
    )
    sentence = "let the pod be spread only where possible (ScheduleAnyway)"
    together = case.with_pod(sentence, *(step for _, step in looser))
    yield from or_else(chain.from_iterable(singly), together if len(looser) > 1 else ())


def _without_terms(
    case: Case, name: str, words: str, terms: tuple[PodAffinityTerm, ...]
) -> Iterator[Remedy]:
    path = ("spec", "affinity", name, _REQUIRED)
    sentence = f"drop the pod's required {words}"
    singly = (
        case.with_pod(f"{sentence} by {term.topology_key}", cut(*path, index))
        for index, term in enumerate(terms if len(terms) > 1 else ())
    )
    together = case.with_pod(sentence, cut(*path))
    yield from or_else(chain.from_iterable(singly), together if terms else ())
