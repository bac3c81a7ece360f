"""Topology assignments in both forms: a list of domains in v1beta1, slices that state once what domains share in v1beta2."""

from __future__ import annotations

from collections.abc import Sequence

from drayman.api.struct import Json
from drayman.apiserver.kinds.reading import items_at, map_at, number_at, text_at
from drayman.apiserver.served.strategy import Object


def as_slices(assignment: Object) -> Object:
    """All domains in one slice; empty where there are none."""
    domains = [domain for domain in items_at(assignment, "domains") if isinstance(domain, dict)]
    levels = items_at(assignment, "levels")
    if not domains:
        return {"levels": levels, "slices": []}
    values = [[str(v) for v in items_at(domain, "values")][: len(levels)] for domain in domains]
    by_level = [
        [each[number] if number < len(each) else "" for each in values]
        for number in range(len(levels))
    ]
    counts = [number_at(domain, "count") for domain in domains]
    same = len(set(counts)) == 1
    return {
        "levels": levels,
        "slices": [
            {
                "domainCount": len(domains),
                "valuesPerLevel": [_values(each) for each in by_level],
                "podCounts": {"universal": counts[0]} if same else {"individual": counts},
            }
        ],
    }


def _values(values: Sequence[str]) -> Object:
    if len(set(values)) == 1:
        return {"universal": values[0]}
    return {"individual": {"roots": list(values)}}


def as_domains(assignment: Object) -> Object:
    """The domains of all slices, in their order."""
    domains: list[Json] = []
    for part in items_at(assignment, "slices"):
        number = number_at(part, "domainCount")
        columns = [_column(level, number) for level in items_at(part, "valuesPerLevel")]
        counts = _counts(map_at(part, "podCounts"), number)
        for index in range(number):
            values: list[Json] = [column[index] for column in columns]
            domains.append({"values": values, "count": counts[index]})
    return {"levels": items_at(assignment, "levels"), "domains": domains}


def _column(level: Json, number: int) -> list[str]:
    individual = map_at(level, "individual")
    if not individual:
        return [text_at(level, "universal")] * number
    prefix, suffix = text_at(individual, "prefix"), text_at(individual, "suffix")
    roots = [str(root) for root in items_at(individual, "roots")]
    return [f"{prefix}{root}{suffix}" for root in roots[:number]] + [""] * (number - len(roots))


def _counts(given: Object, number: int) -> list[int]:
    individual = items_at(given, "individual")
    if not individual:
        return [number_at(given, "universal")] * number
    found = [count if isinstance(count, int) else 0 for count in individual[:number]]
    return found + [0] * (number - len(found))
