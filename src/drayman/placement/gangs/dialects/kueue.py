"""Kueue's groups of plain pods: a label with the name of the group, and annotations with its size and its topology.

Kueue admits the pods of a group together and lets a scheduler place them. Here they are placed together too. Pods of one group may have
several roles (pod sets), each with a topology request of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from drayman.api.codec import parse_json
from drayman.api.core import Pod
from drayman.api.errors import DecodeError
from drayman.placement.gangs.declaring import Declaration, combined
from drayman.placement.gangs.gang import (
    Dialect,
    Flaw,
    Gang,
    GangKey,
    InvalidGangError,
    Membership,
    Slices,
    Wish,
)
from drayman.placement.gangs.levels import sliced
from drayman.placement.gangs.ranks import rank_of
from drayman.placement.gangs.statements import Statements, count, field_of, level

NAME: Final = "kueue.x-k8s.io/pod-group-name"
TOTAL: Final = "kueue.x-k8s.io/pod-group-total-count"
FAST_ADMISSION: Final = "kueue.x-k8s.io/pod-group-fast-admission"
INDEX: Final = "kueue.x-k8s.io/pod-group-pod-index"
INDEX_LABEL: Final = "kueue.x-k8s.io/pod-group-pod-index-label"
POD_SET: Final = "kueue.x-k8s.io/podset"
ROLE: Final = "kueue.x-k8s.io/role-hash"
TOGETHER: Final = "kueue.x-k8s.io/podset-group-name"
REQUIRED: Final = "kueue.x-k8s.io/podset-required-topology"
PREFERRED: Final = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED: Final = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE_LEVEL: Final = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE: Final = "kueue.x-k8s.io/podset-slice-size"
SLICE_LAYERS: Final = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
STATED: Final = frozenset(
    {TOTAL, FAST_ADMISSION, INDEX_LABEL, ROLE, TOGETHER, REQUIRED, PREFERRED, UNCONSTRAINED}
    | {SLICE_LEVEL, SLICE_SIZE, SLICE_LAYERS}
)
"""The annotations that count."""
_MOST_LAYERS: Final = 3
_SOURCES: Final = {
    "least": TOTAL,
    "most": TOTAL,
    "parent": TOGETHER,
    "wish": REQUIRED,
    "slices": SLICE_SIZE,
}


def key_of(namespace: str, name: str) -> GangKey:
    return GangKey(Dialect.KUEUE, namespace, name)


def membership_of(pod: Pod) -> tuple[Membership, Declaration | Flaw] | None:
    """The group that a pod is in, and what the pod states about it."""
    name = pod.metadata.labels.get(NAME)
    if not name:
        return None
    key, statements = key_of(pod.metadata.namespace, name), Statements.of(pod)
    subgroup, parent = _roles(pod, statements)
    try:
        rank = rank_of(pod, statements.text(INDEX_LABEL) or _own_index(pod))
        return Membership(key, subgroup, rank), _declared(statements, subgroup, parent)
    except InvalidGangError as error:
        return Membership(key, subgroup), statements.flaw(key, error)


def gang_of(key: GangKey, stated: Collection[Declaration | Flaw]) -> Gang | Flaw:
    return combined(key, stated, _SOURCES)


def _own_index(pod: Pod) -> str:
    return INDEX if INDEX in pod.metadata.labels else ""


def pod_set_stated_by(pod: Pod, role: str) -> str:
    """The pod set that a pod says it is one of: in its label, which it gets when it is started, or as the role that it states."""
    return pod.metadata.labels.get(POD_SET) or role


def _roles(pod: Pod, statements: Statements) -> tuple[str, str]:
    """The subgroup of a pod, and what that is below. Pod sets that are to be placed together have a parent."""
    role = pod_set_stated_by(pod, statements.text(ROLE))
    together = statements.text(TOGETHER)
    parent = f"podset-group/{together}" if together else ""
    return (role, parent) if role else (parent, "")


def _declared(statements: Statements, subgroup: str, parent: str) -> Declaration:
    total = statements.count(TOTAL)
    if total is None:
        raise InvalidGangError(field_of(TOTAL), "is required")
    is_serving = statements.text(FAST_ADMISSION) == "true"
    return Declaration(
        # Pods of a group that is admitted with its first pod may be made one after the other.
        least=0 if is_serving else total,
        most=total,
        subgroup=subgroup,
        parent=parent,
        wish=_wish(statements),
        slices=_slices(statements),
    )


def _wish(statements: Statements) -> Wish:
    wish = Wish(statements.level(REQUIRED), statements.level(PREFERRED))
    if wish and statements.text(UNCONSTRAINED) == "true":
        stated = PREFERRED if wish.required is None else REQUIRED
        raise InvalidGangError(field_of(UNCONSTRAINED), f"cannot be combined with {stated}")
    return wish


def _slices(statements: Statements) -> tuple[Slices, ...]:
    """From the outermost to the innermost."""
    size, of_slice = statements.count(SLICE_SIZE), statements.level(SLICE_LEVEL)
    layers = statements.text(SLICE_LAYERS)
    if not layers:
        return sliced(size, of_slice, field_of(SLICE_SIZE), field_of(SLICE_LEVEL))
    if size is not None or of_slice is not None:
        stated = SLICE_LEVEL if size is None else SLICE_SIZE
        raise InvalidGangError(field_of(SLICE_LAYERS), f"cannot be combined with {stated}")
    return _layers(layers, field_of(SLICE_LAYERS))


def _layers(text: str, field: str) -> tuple[Slices, ...]:
    try:
        given = parse_json(text.encode())
    except DecodeError as error:
        raise InvalidGangError(field, f"is not JSON: {error}") from error
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_LAYERS:
        raise InvalidGangError(field, f"is not a list of 1 to {_MOST_LAYERS} layers")
    layers: list[Slices] = []
    for number, each in enumerate(given):
        if not isinstance(each, dict) or not {"topology", "size"} == each.keys():
            raise InvalidGangError(field, f"layer {number} does not consist of topology and size")
        size = count(str(each["size"]), field)
        if layers and layers[-1].size % size:
            message = (
                f"layer {number} does not divide the one around it: {layers[-1].size} by {size}"
            )
            raise InvalidGangError(field, message)
        layers.append(Slices(size, Wish(required=level(str(each["topology"]), field))))
    return tuple(layers)
