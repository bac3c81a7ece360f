"""Rules between pods that leave no node: affinity, anti-affinity, spreading. A rule dropped, or turned into a preference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.core import PodAffinityTerm
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Case
from drayman.explain.remedies.patching import Step, cut, put

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_STRICT: Final = "DoNotSchedule"


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
    strict = [i for i, each in enumerate(constraints) if each.when_unsatisfiable == _STRICT]
    helped = False
    for index in strict:
        key = constraints[index].topology_key
        sentence = f"let the pod be spread over {key} only where that can be (ScheduleAnyway)"
        found = case.with_pod(sentence, (_loose(index),))
        if found is not None:
            helped = True
            yield found
    if not helped and len(strict) > 1:
        sentence = "let the pod be spread only where that can be (ScheduleAnyway)"
        found = case.with_pod(sentence, tuple(_loose(index) for index in strict))
        if found is not None:
            yield found


def _without_terms(
    case: Case, name: str, words: str, terms: tuple[PodAffinityTerm, ...]
) -> Iterator[Remedy]:
    helped = False
    for index, term in enumerate(terms if len(terms) > 1 else ()):
        sentence = f"drop the pod's required {words} by {term.topology_key}"
        found = case.with_pod(sentence, (cut("spec", "affinity", name, _REQUIRED, index),))
        if found is not None:
            helped = True
            yield found
    if terms and not helped:
        sentence = f"drop the pod's required {words}"
        found = case.with_pod(sentence, (cut("spec", "affinity", name, _REQUIRED),))
        if found is not None:
            yield found


def _loose(index: int) -> Step:
    return put("ScheduleAnyway", "spec", "topologySpreadConstraints", index, "whenUnsatisfiable")
