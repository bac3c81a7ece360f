"""Assignments as Workloads have them: levels, and slices of domains in which equal values are written once.

A slice says of each level either the one value that all of its domains have, or what their values begin and end with, and the parts
between. Host names of one cluster mostly differ in a few digits, so a slice of them takes a fraction of the room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.api.errors import DecodeError
from drayman.api.kueue_workload import (
    IndividualValues,
    LevelValues,
    PodCounts,
    TopologyAssignment,
    TopologyAssignmentSlice,
)
from drayman.quota.demands import Domain, Placement

MOST_DOMAINS: Final = 100_000
"""Of a slice."""


def assignment_of(placement: Placement) -> TopologyAssignment:
    """A placement in the form of the API."""
    domains = placement.domains
    return TopologyAssignment(
        levels=placement.levels,
        slices=tuple(
            _slice(len(placement.levels), domains[first : first + MOST_DOMAINS])
            for first in range(0, len(domains), MOST_DOMAINS)
        ),
    )


def placement_of(assignment: TopologyAssignment) -> Placement:
    """What an assignment says. Raises DecodeError, whose path begins with `topologyAssignment`."""
    domains: list[tuple[Domain, int]] = []
    for number, part in enumerate(assignment.slices):
        path = f"topologyAssignment.slices[{number}]"
        if len(part.values_per_level) != len(assignment.levels):
            raise DecodeError(
                f"{path}.valuesPerLevel",
                f"has values for {len(part.values_per_level)} levels, and there are"
                f" {len(assignment.levels)}",
            )
        if part.domain_count != 1 and all(v.individual is None for v in part.values_per_level):
            # Whoever wrote it could otherwise have a few bytes stand for billions of domains.
            raise DecodeError(
                f"{path}.domainCount", f"has {part.domain_count} domains with the same values"
            )
        columns = [
            _values(values, part.domain_count, f"{path}.valuesPerLevel[{level}]")
            for level, values in enumerate(part.values_per_level)
        ]
        counts = _counts(part.pod_counts, part.domain_count, f"{path}.podCounts")
        domains += zip(zip(*columns, strict=True), counts, strict=True)
    return Placement(assignment.levels, tuple(domains))


def _slice(levels: int, domains: Sequence[tuple[Domain, int]]) -> TopologyAssignmentSlice:
    counts = [count for _, count in domains]
    return TopologyAssignmentSlice(
        domain_count=len(domains),
        values_per_level=tuple(
            _level_values([domain[level] for domain, _ in domains]) for level in range(levels)
        ),
        pod_counts=PodCounts(universal=counts[0])
        if len(set(counts)) == 1
        else PodCounts(individual=tuple(counts)),
    )


def _level_values(values: Sequence[str]) -> LevelValues:
    if len(set(values)) == 1:
        return LevelValues(universal=values[0])
    # Something is left of each value: a part between that is empty says little to a reader.
    most = min(map(len, values)) - 1
    prefix = _beginning(values)[:most]
    rests = [value[len(prefix) :] for value in values]
    suffix = _beginning([rest[:0:-1] for rest in rests])[::-1]
    return LevelValues(
        individual=IndividualValues(
            prefix=prefix,
            suffix=suffix,
            roots=tuple(rest[: len(rest) - len(suffix)] for rest in rests),
        )
    )


def _values(values: LevelValues, count: int, path: str) -> list[str]:
    if values.individual is None:
        if values.universal is None:
            raise DecodeError(path, "has neither one value for all domains nor one for each")
        return [values.universal] * count
    individual = values.individual
    if len(individual.roots) != count:
        raise DecodeError(
            f"{path}.individual.roots", f"has {len(individual.roots)} values for {count} domains"
        )
    return [f"{individual.prefix}{root}{individual.suffix}" for root in individual.roots]


def _counts(counts: PodCounts, count: int, path: str) -> list[int]:
    if counts.universal is not None:
        return [counts.universal] * count
    if len(counts.individual) != count:
        raise DecodeError(
            f"{path}.individual", f"has {len(counts.individual)} counts for {count} domains"
        )
    return list(counts.individual)


def _beginning(values: Sequence[str]) -> str:
    """What all of these begin with."""
    first, last = min(values), max(values)  # those between them begin alike, too
    number = 0
    while number < len(first) and first[number] == last[number]:
        number += 1
    return first[:number]
