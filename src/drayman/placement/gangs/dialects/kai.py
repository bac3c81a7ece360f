"""Gangs of the KAI Scheduler: a PodGroup that pods name in an annotation, or annotations of a Job from which KAI would make one.

Levels are those of a Topology object, by the label or by an alias. A gang that names a topology or a level that does not exist waits, as
with KAI. A pod that is in no subgroup of a group that has some is not counted, also as with KAI; here its reason to wait says so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.custom_groups import (
    KaiPodGroup,
    KaiPodGroupSpec,
    KaiSubGroup,
    KaiTopology,
    KaiTopologyConstraint,
    TopologyLevel,
    spec_of,
)
from drayman.api.errors import DecodeError
from drayman.api.times import parse_duration, seconds_of
from drayman.placement.gangs.declaring import Declaration, combined
from drayman.placement.gangs.gang import (
    DEEPEST,
    MOST_SUBGROUPS,
    NO_WISH,
    Dialect,
    Flaw,
    FlawKind,
    Gang,
    GangKey,
    InvalidGangError,
    Membership,
    Slices,
    Subgroup,
    Wish,
)
from drayman.placement.gangs.ranks import rank_of
from drayman.placement.gangs.statements import Statements, field_of
from drayman.placement.topologies import Topologies, levels_of

POD_GROUP: Final = "pod-group-name"
SUBGROUP: Final = "kai.scheduler/subgroup-name"
QUEUE: Final = "kai.scheduler/queue"
"""The label of a pod, or of its Job, with the queue that it is in, where no PodGroup says so."""
LEAST: Final = "kai.scheduler/batch-min-member"
TOPOLOGY: Final = "kai.scheduler/topology"
REQUIRED: Final = "kai.scheduler/topology-required-placement"
PREFERRED: Final = "kai.scheduler/topology-preferred-placement"
SEGMENT_SIZE: Final = "kai.scheduler/segment-size"
SEGMENT_REQUIRED: Final = "kai.scheduler/segment-topology-required-placement"
SEGMENT_PREFERRED: Final = "kai.scheduler/segment-topology-preferred-placement"
INDEX_LABEL: Final = "kai.scheduler/pod-index-label"
STATING: Final = frozenset({LEAST, REQUIRED, PREFERRED, SEGMENT_SIZE})
"""Annotations of a pod or its owner that make a gang."""
STATED: Final = STATING | {TOPOLOGY, SEGMENT_REQUIRED, SEGMENT_PREFERRED, INDEX_LABEL}

GRACE_S: Final = 60.0
"""How long a gang may be below its minimum, unless it says so itself."""
_PREEMPTIBLE: Final = {"": None, "preemptible": True, "non-preemptible": False}
_SOURCES: Final = {
    "least": LEAST,
    "topology": TOPOLOGY,
    "wish": REQUIRED,
    "slices": SEGMENT_SIZE,
}


def key_of(namespace: str, name: str) -> GangKey:
    return GangKey(Dialect.KAI, namespace, name)


def membership_of(pod: Pod) -> Membership | None:
    """In a group that has an object."""
    name = pod.metadata.annotations.get(POD_GROUP)
    if not name:
        return None
    subgroup = pod.metadata.labels.get(SUBGROUP, "")
    return Membership(key_of(pod.metadata.namespace, name), subgroup, rank_of(pod))


# Groups that have an object.


def gang_of(key: GangKey, group: KaiPodGroup, topologies: Topologies) -> Gang:
    """Raises InvalidGangError and DecodeError."""
    spec = spec_of(KaiPodGroupSpec, group)
    if spec.min_member is not None and spec.min_sub_group is not None:
        raise InvalidGangError("spec.minSubGroup", "cannot be combined with spec.minMember")
    if spec.preemptibility not in _PREEMPTIBLE:
        message = f"{spec.preemptibility!r} is neither preemptible nor non-preemptible"
        raise InvalidGangError("spec.preemptibility", message)
    subgroups = _subgroups(spec, topologies)
    outermost = sum(not each.parent for each in subgroups)
    grace = _seconds(spec.staleness_grace_period, "spec.stalenessGracePeriod")
    delay = _seconds(spec.preemption_delay, "spec.preemptionDelay")
    if delay is not None and delay < 0:
        raise InvalidGangError("spec.preemptionDelay", "is negative")
    return Gang(
        key=key,
        least=_least(spec.min_member, "spec.minMember", 0 if subgroups else 1),
        least_children=_children(spec.min_sub_group, outermost, "spec.minSubGroup"),
        subgroups=subgroups,
        wish=_wish(spec.topology_constraint, "spec.topologyConstraint", topologies),
        grace_s=GRACE_S if grace is None else None if grace < 0 else grace,
        preemption_delay_s=delay or 0.0,
        is_preemptible=_PREEMPTIBLE[spec.preemptibility],
        since=seconds_of(group.metadata.creation_timestamp),
    )


def _subgroups(spec: KaiPodGroupSpec, topologies: Topologies) -> tuple[Subgroup, ...]:
    """Parents before their children. Raises InvalidGangError."""
    if len(spec.sub_groups) > MOST_SUBGROUPS:
        message = f"{len(spec.sub_groups)} subgroups, and there can be {MOST_SUBGROUPS}"
        raise InvalidGangError("spec.subGroups", message)
    by_name: dict[str, tuple[int, KaiSubGroup]] = {}
    for number, each in enumerate(spec.sub_groups):
        path = f"spec.subGroups[{number}]"
        if not each.name:
            raise InvalidGangError(f"{path}.name", "is required")
        if each.name in by_name:
            raise InvalidGangError(f"{path}.name", f"there is another subgroup {each.name}")
        by_name[each.name] = (number, each)
    below: dict[str, list[str]] = {}
    for name, (number, each) in by_name.items():
        if each.parent and each.parent not in by_name:
            path = f"spec.subGroups[{number}].parent"
            raise InvalidGangError(path, f"there is no subgroup {each.parent}")
        below.setdefault(each.parent or "", []).append(name)
    found, upcoming = [], list(below.get("", ()))
    depth = {"": 0}
    while upcoming:
        name = upcoming.pop(0)
        number, each = by_name[name]
        children = below.get(name, [])
        path = f"spec.subGroups[{number}]"
        depth[name] = depth[each.parent or ""] + 1
        if depth[name] > DEEPEST:
            message = f"is within {depth[name] - 1} others, and there can be {DEEPEST - 1}"
            raise InvalidGangError(f"{path}.parent", message)
        found.append(_subgroup(each, len(children), path, topologies))
        upcoming.extend(children)
    for name, (number, _) in by_name.items():
        if all(each.name != name for each in found):
            message = f"subgroup {name} is below itself"
            raise InvalidGangError(f"spec.subGroups[{number}].parent", message)
    return tuple(found)


def _subgroup(given: KaiSubGroup, children: int, path: str, topologies: Topologies) -> Subgroup:
    if given.min_member is not None and given.min_sub_group is not None:
        raise InvalidGangError(f"{path}.minSubGroup", "cannot be combined with minMember")
    least = given.min_member
    if least is None and not children:
        least = 1
    return Subgroup(
        given.name,
        given.parent or "",
        None if least is None else _least(least, f"{path}.minMember", 0),
        _children(given.min_sub_group, children, f"{path}.minSubGroup"),
        _wish(given.topology_constraint, f"{path}.topologyConstraint", topologies),
    )


def _least(given: int | None, field: str, usual: int) -> int:
    if given is not None and given < 0:
        raise InvalidGangError(field, f"{given} is less than 0")
    return usual if given is None else given


def _children(given: int | None, there: int, field: str) -> int | None:
    if given is None:
        return None
    if given < 0:
        raise InvalidGangError(field, f"{given} is less than 0")
    if given > there:
        message = f"{given} subgroups are required, and there are {there}"
        raise InvalidGangError(field, message)
    return given


def _seconds(text: str | None, field: str) -> float | None:
    if text is None:
        return None
    try:
        return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)
    except ValueError as error:
        raise InvalidGangError(field, str(error)) from error


# Levels.


def _wish(given: KaiTopologyConstraint | None, path: str, topologies: Topologies) -> Wish:
    if given is None:
        return NO_WISH
    wish = Wish(given.required_topology_level or None, given.preferred_topology_level or None)
    fields = tuple(
        f"{path}.{each}" for each in ("topology", "requiredTopologyLevel", "preferredTopologyLevel")
    )
    return _resolved(wish, given.topology, fields, topologies)


def _resolved(wish: Wish, topology: str, fields: tuple[str, ...], topologies: Topologies) -> Wish:
    """The wish with labels for levels. Raises InvalidGangError, with one of the fields: of the topology and of the two levels."""
    if not wish:
        return NO_WISH
    of_topology, of_required, of_preferred = fields
    if not topology:
        raise InvalidGangError(of_topology, "is required: it has the levels")
    found = topologies.find(KaiTopology, topology)
    if found is None:
        raise InvalidGangError(of_topology, f"topology {topology} does not exist")
    try:
        levels = levels_of(found)
    except DecodeError as error:
        raise InvalidGangError(of_topology, f"topology {topology}, {error}") from error
    return Wish(
        _label(wish.required, levels, topology, of_required),
        _label(wish.preferred, levels, topology, of_preferred),
        tuple(each.node_label for each in levels),
    )


def _label(
    level: str | None, levels: Collection[TopologyLevel], topology: str, field: str
) -> str | None:
    if level is None:
        return None
    for each in levels:
        if level in (each.node_label, each.alias):
            return each.node_label
    known = ", ".join(each.alias or each.node_label for each in levels)
    raise InvalidGangError(field, f"topology {topology} has no level {level}; it has {known}")


# Gangs of an owner's pods.


def declared_by(statements: Statements) -> Declaration:
    """What annotations of a pod or its Job state. Without a number, each pod starts when it can. Raises InvalidGangError."""
    wish = Wish(statements.text(REQUIRED) or None, statements.text(PREFERRED) or None)
    size = statements.count(SEGMENT_SIZE, least=2)
    slices: tuple[Slices, ...] = ()
    if size is not None:
        inner = Wish(
            statements.text(SEGMENT_REQUIRED) or None, statements.text(SEGMENT_PREFERRED) or None
        )
        if not inner:
            message = "is required: the size of segments is stated"
            raise InvalidGangError(field_of(SEGMENT_REQUIRED), message)
        slices = (Slices(size, inner),)
    return Declaration(
        least=statements.count(LEAST, least=0) or 0,
        topology=statements.text(TOPOLOGY),
        wish=wish,
        slices=slices,
    )


def declared_gang(
    key: GangKey, stated: Collection[Declaration | Flaw], topologies: Topologies
) -> Gang | Flaw:
    """The gang of an owner's pods."""
    gang = combined(key, stated, _SOURCES)
    if isinstance(gang, Flaw):
        return gang
    topology = next(each.topology for each in stated if isinstance(each, Declaration))
    own = tuple(map(field_of, (TOPOLOGY, REQUIRED, PREFERRED)))
    inner = tuple(map(field_of, (TOPOLOGY, SEGMENT_REQUIRED, SEGMENT_PREFERRED)))
    try:
        wish = _resolved(gang.wish, topology, own, topologies)
        slices = tuple(
            Slices(each.size, _resolved(each.wish, topology, inner, topologies))
            for each in gang.slices
        )
    except InvalidGangError as error:
        return Flaw(key, FlawKind.INVALID, str(key), error.message, error.field)
    return replace(gang, wish=wish, slices=slices, grace_s=GRACE_S)
