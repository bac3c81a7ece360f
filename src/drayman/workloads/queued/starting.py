"""Starting what was admitted, and putting it back as it was: what is written into pod templates, and what is taken out again.

Starting adds to templates and never replaces what they say, and only to five of their members. So the original of those members, which the
Workload keeps, is all that is needed to restore a template exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from drayman.api import codec
from drayman.api.core import Toleration
from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.kueue_workload import (
    Admission,
    AdmissionCheckState,
    PodSet,
    PodSetAssignment,
    TopologyRequest,
)
from drayman.api.struct import Json
from drayman.placement.gangs.dialects.kueue import POD_SET
from drayman.workloads.queued.kinds import QueuedKind
from drayman.workloads.queued.names import TOPOLOGY_GATE, WORKLOAD
from drayman.workloads.queued.places import Object, pointer, read

_ADDED_TO: Final = (
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec", "nodeSelector"),
    ("spec", "tolerations"),
    ("spec", "schedulingGates"),
)
"""The members of a template that starting adds to."""

Operation = dict[str, Json]


class StartError(Exception):
    """What was admitted contradicts what the templates say; the text says where."""


@dataclass(frozen=True, slots=True)
class Additions:
    """What the pods of a set get when they are started."""

    name: str
    count: int
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    gates: tuple[str, ...] = ()


def additions_for(
    workload: str,
    pod_sets: Sequence[PodSet],
    admission: Admission,
    flavors: Mapping[str, ResourceFlavorSpec],
    checks: Iterable[AdmissionCheckState] = (),
    gates: tuple[str, ...] = (),
) -> tuple[Additions, ...]:
    """What each pod set of an admitted Workload gets: of its flavors, of the checks, and of its place in a topology. Raises StartError.

    `gates` are held until somebody lets pods go one by one.
    """
    assigned = {each.name: each for each in admission.pod_set_assignments}
    updates = [update for check in checks for update in check.pod_set_updates]
    found = []
    for pod_set in pod_sets:
        assignment = assigned.get(pod_set.name, PodSetAssignment(name=pod_set.name))
        chosen = [
            flavors[name] for name in dict.fromkeys(assignment.flavors.values()) if name in flavors
        ]
        of_checks = [update for update in updates if update.name == pod_set.name]
        where = f"pod set {pod_set.name}"
        in_topology = assignment.topology_assignment is not None
        found.append(
            Additions(
                name=pod_set.name,
                count=pod_set.count if assignment.count is None else assignment.count,
                labels=_merged(
                    f"{where}: label",
                    [{POD_SET: pod_set.name}, *(each.labels for each in of_checks)],
                ),
                annotations=_merged(
                    f"{where}: annotation",
                    [
                        {WORKLOAD: workload} if in_topology else {},
                        *(each.annotations for each in of_checks),
                    ],
                ),
                node_selector=_merged(
                    f"{where}: node selector",
                    [
                        *(each.node_labels for each in chosen),
                        *(each.node_selector for each in of_checks),
                    ],
                ),
                tolerations=(
                    *(each for flavor in chosen for each in flavor.tolerations),
                    *(each for update in of_checks for each in update.tolerations),
                ),
                gates=(TOPOLOGY_GATE, *gates) if in_topology else gates,
            )
        )
    return tuple(found)


def _merged(what: str, parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for part in parts:
        for key, value in part.items():
            if merged.setdefault(key, value) != value:
                raise StartError(f"{what} {key} would have to be {merged[key]} and {value}")
    return merged


def with_additions(template: Mapping[str, Json], added: Additions) -> Object:
    """A pod template as it is started. Raises StartError where it says otherwise."""
    metadata, spec = dict(template.get("metadata") or {}), dict(template.get("spec") or {})
    where = f"pod set {added.name}"
    for part, name, what, given in (
        (metadata, "labels", "label", added.labels),
        (metadata, "annotations", "annotation", added.annotations),
        (spec, "nodeSelector", "node selector", added.node_selector),
    ):
        if given:
            part[name] = _merged(f"{where}: {what}", [part.get(name) or {}, given])
    tolerations = list(spec.get("tolerations") or ())
    tolerations += [
        new for each in added.tolerations if (new := codec.to_dict(each)) not in tolerations
    ]
    gates = list(spec.get("schedulingGates") or ())
    gates += [new for name in added.gates if (new := {"name": name}) not in gates]
    lists = {"tolerations": tolerations, "schedulingGates": gates}
    spec |= {name: value for name, value in lists.items() if value}
    started = {**template, "spec": spec}
    return {**started, "metadata": metadata} if metadata else started


def start(kind: QueuedKind, obj: Object, added: Sequence[Additions]) -> list[Operation]:
    """The changes that start an object, as a JSON patch. Raises StartError."""
    by_name = {each.name: each for each in added}
    changes: list[Operation] = [{"op": "add", "path": pointer(kind.suspend), "value": False}]
    for place in kind.places(obj):
        given = by_name.get(place.name)
        if given is None:
            raise StartError(f"pod set {place.name} was not admitted")
        template = with_additions(read(obj, place.template) or {}, given)
        changes.append({"op": "add", "path": pointer(place.template), "value": template})
        if given.count != place.count:
            if not place.counts:
                raise StartError(
                    f"pod set {place.name} cannot run with {given.count} of {place.count} pods"
                )
            changes += [
                {"op": "add", "path": pointer(path), "value": given.count} for path in place.counts
            ]
    return changes


def suspend(kind: QueuedKind) -> Operation:
    return {"op": "add", "path": pointer(kind.suspend), "value": True}


def restore(kind: QueuedKind, obj: Object, pod_sets: Sequence[PodSet]) -> list[Operation]:
    """The changes that give a suspended object its original templates and counts; none where it has them."""
    by_name = {each.name: each for each in pod_sets}
    changes: list[Operation] = []
    for place in kind.places(obj):
        original = by_name.get(place.name)
        if original is None:
            continue
        current = read(obj, place.template) or {}
        template = original_template(current, original.template)
        if template != current:
            changes.append({"op": "replace", "path": pointer(place.template), "value": template})
        if place.counts and place.count != original.count:
            changes += [
                {"op": "add", "path": pointer(path), "value": original.count}
                for path in place.counts
            ]
    return changes


def original_template(current: Mapping[str, Json], original: Mapping[str, Json]) -> Object:
    """A template with the members that starting adds to as they were."""
    restored: Object = {**current}
    for part, name in _ADDED_TO:
        before, inner = read(original, (part, name)), dict(restored.get(part) or {})
        if before:
            inner[name] = before
        else:
            inner.pop(name, None)
        if inner:
            restored[part] = inner
        else:
            restored.pop(part, None)
    return restored


def same_pod_sets(found: Sequence[PodSet], wanted: Sequence[PodSet]) -> bool:
    """Whether pod sets ask for the same. What only says where a pod of a set belongs does not count."""
    return [_compared(each) for each in found] == [_compared(each) for each in wanted]


def _compared(pod_set: PodSet) -> tuple[str, int, int | None, TopologyRequest | None, Json]:
    template = pod_set.template
    spec = {
        name: value
        for name, value in (template.get("spec") or {}).items()
        if value not in (None, [], {})
    }
    labels = {
        name: value
        for name, value in (read(template, ("metadata", "labels")) or {}).items()
        if name != POD_SET
    }
    annotations = read(template, ("metadata", "annotations")) or {}
    request = pod_set.topology_request
    return (
        pod_set.name,
        pod_set.count,
        pod_set.min_count,
        request if request is not None and request.names_topology else None,
        (spec, labels, annotations),
    )


def as_started(pod_sets: Sequence[PodSet], added: Sequence[Additions]) -> tuple[PodSet, ...]:
    """Pod sets as an object has them while it runs. Raises StartError."""
    by_name = {each.name: each for each in added}
    found = []
    for pod_set in pod_sets:
        given = by_name[pod_set.name]
        template = with_additions(pod_set.template, given)
        least = pod_set.min_count
        found.append(
            PodSet(
                name=pod_set.name,
                template=template,
                count=given.count,
                min_count=least if least is not None and least < given.count else None,
                topology_request=pod_set.topology_request,
            )
        )
    return tuple(found)
