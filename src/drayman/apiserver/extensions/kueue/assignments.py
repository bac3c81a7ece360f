"""Topology assignments in both forms: a list of domains in v1beta1, slices that state once what domains share in v1beta2."""

from __future__ import annotations

from drayman.api import codec
from drayman.api.errors import DecodeError
from drayman.api.kueue_workload import TopologyAssignment
from drayman.api.struct import ApiStruct, Int32
from drayman.apiserver.served.strategy import Object
from drayman.quota.demands import Placement
from drayman.quota.topology.assignments import assignment_of, placement_of


class _Domain(ApiStruct):
    values: tuple[str, ...] = ()
    count: Int32 = 0


class _Assignment(ApiStruct):
    levels: tuple[str, ...] = ()
    domains: tuple[_Domain, ...] = ()


def as_slices(assignment: Object) -> Object:
    """An assignment of v1beta1 in the newer form. One that makes no sense stays, for the rules to refuse."""
    try:
        given = codec.convert(_Assignment, assignment)
    except DecodeError:
        return assignment
    if any(len(domain.values) != len(given.levels) for domain in given.domains):
        return assignment
    domains = tuple((domain.values, domain.count) for domain in given.domains)
    return codec.to_dict(assignment_of(Placement(given.levels, domains)))


def as_domains(assignment: Object) -> Object:
    """An assignment in the form of v1beta1. One that makes no sense is shown as it is."""
    try:
        placement = placement_of(codec.convert(TopologyAssignment, assignment))
    except DecodeError:
        return assignment
    domains = tuple(_Domain(values=values, count=count) for values, count in placement.domains)
    return codec.to_dict(_Assignment(levels=placement.levels, domains=domains))
