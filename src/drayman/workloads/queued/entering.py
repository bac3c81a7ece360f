"""What is written into an object when it comes in, so that it waits: Jobs are suspended, pods are held by a gate, sets pass their queue on.

As Kueue's webhooks do it. What is below something that waits itself, such as a pod of a Job, does not wait a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from drayman.api.errors import QuantityError
from drayman.api.integers import parse_integer
from drayman.api.labels import LabelMatcher
from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.placement.gangs.dialects.kueue import (
    FAST_ADMISSION,
    NAME,
    PREFERRED,
    REQUIRED,
    ROLE,
    SLICE_LEVEL,
    TOTAL,
    UNCONSTRAINED,
)
from drayman.workloads.queued.kinds import (
    BY_KIND,
    DEPLOYMENTS,
    FRAMEWORKS,
    PODS,
    STATEFUL_SETS,
    QueuedKind,
)
from drayman.workloads.queued.names import (
    DEFAULT_QUEUE,
    FINALIZER,
    GATE,
    MANAGED,
    PREBUILT,
    PRIORITY_CLASS,
    QUEUE,
    SERVING,
    TOPOLOGY_GATE,
    annotations_of,
    labels_of,
    queue_of,
    workload_name,
)
from drayman.workloads.queued.places import Object, Place, number, read
from drayman.workloads.queued.pods import role_hash

_TOPOLOGY: Final = frozenset({REQUIRED, PREFERRED, UNCONSTRAINED, SLICE_LEVEL})
"""Annotations of pods that get their place in a topology from their queue."""
DEEPEST: Final = 10
"""How many owners above each other are looked at."""
_EVERYWHERE: Final = LabelMatcher(())
_SETS: Final = {("apps", "Deployment"): DEPLOYMENTS, ("apps", "StatefulSet"): STATEFUL_SETS}


@dataclass(frozen=True, slots=True)
class Intake:
    """Which objects wait."""

    frameworks: frozenset[str] = frozenset(FRAMEWORKS)
    without_queue: bool = False
    """Whether also what names no queue: it then waits until it names one."""
    namespaces: LabelMatcher = field(default=_EVERYWHERE)
    """The labels of namespaces in which anything waits."""


Finder = Callable[[QueuedKind, str], Mapping[str, Json] | None]
"""Finds an object of a kind, by name, in the namespace that something is created in."""


@dataclass(frozen=True, slots=True)
class EntrySurroundings:
    """What has to be known about where an object is created."""

    namespace_labels: Mapping[str, str]
    has_default_queue: bool
    """Whether the namespace has a local queue for what names none."""
    find: Finder


class Charged(NamedTuple):
    """An object that waits as a whole, and through which others are charged."""

    kind: QueuedKind
    obj: Mapping[str, Json]


def framework_of(group: str, kind: str) -> str | None:
    """What a kind is called in the configuration; None if it cannot wait."""
    if (group, kind) == ("", "Pod"):
        return PODS
    known = BY_KIND.get((group, kind))
    return known.framework if known is not None else _SETS.get((group, kind))


def waits(
    obj: Mapping[str, Json], framework: str, intake: Intake, around: EntrySurroundings
) -> bool:
    """Whether an object has to wait for quota. Its queue has been set by `choose_queue`."""
    if framework not in intake.frameworks or not intake.namespaces.matches(around.namespace_labels):
        return False
    if is_below_queued(obj, intake, around.find):
        return False
    return bool(queue_of(obj)) or intake.without_queue


def is_below_queued(obj: Mapping[str, Json], intake: Intake, find: Finder) -> bool:
    """Whether an owner of an object waits as a whole, so that the object is charged through it. Sets do not: their pods do."""
    return charged_owner(obj, intake, find) is not None


def charged_owner(obj: Mapping[str, Json], intake: Intake, find: Finder) -> Charged | None:
    """The owner through which an object is charged: the topmost that waits as a whole; None if the object is charged for itself, if at all.

    Every exemption of an object because of its owner goes through here. A reference alone proves nothing, since a tenant can write it: the
    owner exists, has that uid, and would itself make such an object. Whether the owner's Workload covers the object is a matter of what
    is admitted at the moment (`quota/charged.py`).
    """
    found = None
    for kind, above in owners_of(obj, intake, find):
        if queue_of(above) or intake.without_queue:
            found = Charged(kind, above)
    return found


def owners_of(
    obj: Mapping[str, Json], intake: Intake, find: Finder
) -> Iterator[tuple[QueuedKind, Mapping[str, Json]]]:
    """The objects that an object was made for, the nearest first, as far as their kinds wait as a whole."""
    for _ in range(DEEPEST):
        owner = controller_of(obj)
        kind = None if owner is None else kind_of_owner(owner)
        if owner is None or kind is None or kind.framework not in intake.frameworks:
            return
        above = find(kind, str(owner.get("name")))
        if above is None or above["metadata"].get("uid") != owner.get("uid"):
            return
        if not would_make(kind, above, obj):
            return
        yield kind, above
        obj = above


def would_make(kind: QueuedKind, owner: Mapping[str, Json], obj: Mapping[str, Json]) -> bool:
    """Whether the controller of an owner would make an object: its kind, the devices that its template asks for, its index."""
    group, _, _ = str(obj.get("apiVersion") or "v1").rpartition("/")
    made = group, str(obj.get("kind") or "Pod")
    if made not in kind.makes:
        return False
    places = kind.places(dict(owner))
    if made == ("", "Pod"):
        asks = [_devices_of(read(obj, ("spec",)))]
    else:
        below = BY_KIND[made]
        asks = [
            _devices_of(read(obj, (*place.template, "spec"))) for place in below.places(dict(obj))
        ]
    templates = [(each, _devices_of(read(owner, (*each.template, "spec")))) for each in places]
    return all(
        any(ask <= template and _has_index(place, obj) for place, template in templates)
        for ask in asks
    )


def _devices_of(spec: Json) -> frozenset[Hashable]:
    """What a pod asks of devices: its claims, and what its containers have of resources that devices may stand behind."""
    found: set[Hashable] = set()
    for entry in read(spec, ("resourceClaims",)) or ():
        found.add(
            (
                entry.get("resourceClaimName"),
                entry.get("resourceClaimTemplateName"),
                entry.get("name"),
            )
        )
    for member in ("initContainers", "containers"):
        for container in read(spec, (member,)) or ():
            resources = container.get("resources") or {}
            asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
            found |= {
                (container.get("name"), name, _exact(amount))
                for name, amount in asked.items()
                if "/" in name
            }
    return frozenset(found)


def _exact(amount: Json) -> Hashable:
    """A quantity by its value, however it is written."""
    try:
        return Quantity.parse(str(amount)).amount
    except QuantityError:
        return str(amount)


def _has_index(place: Place, obj: Mapping[str, Json]) -> bool:
    """Whether the number of an object within a pod set, if it states one, is one that the set has."""
    stated = {**annotations_of(obj), **labels_of(obj)}
    for label, most in (
        (place.index_label, place.indexes),
        (place.subgroup_label, place.subgroups),
    ):
        index = parse_integer(stated.get(label, "")) if label else None
        if index is not None and most is not None and not 0 <= index < most:
            return False
    return True


def controller_of(obj: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """The reference to what has made an object."""
    owners = read(obj, ("metadata", "ownerReferences")) or ()
    return next((each for each in owners if each.get("controller")), None)


def kind_of_owner(owner: Mapping[str, Json]) -> QueuedKind | None:
    """Of a reference: the kind, if that is queued as a whole."""
    group = str(owner.get("apiVersion") or "").rpartition("/")[0]
    return BY_KIND.get((group, str(owner.get("kind"))))


def choose_queue(obj: Object, framework: str, intake: Intake, around: EntrySurroundings) -> None:
    """Put an object that names no queue into the default one of its namespace."""
    if queue_of(obj) or not around.has_default_queue or framework not in intake.frameworks:
        return
    if any(owners_of(obj, intake, around.find)):
        return  # Its owner has a queue, or was to have none.
    if intake.namespaces.matches(around.namespace_labels):
        obj["metadata"]["labels"] = {**labels_of(obj), QUEUE: DEFAULT_QUEUE}


def hold_job(kind: QueuedKind, obj: Object) -> None:
    """Suspend a new object."""
    part: Json = obj
    for name in kind.suspend[:-1]:
        part = part.setdefault(name, {})
    part[kind.suspend[-1]] = True


def hold_pod(obj: Object) -> None:
    """Gate a new pod, and mark it as one that a queue lets go."""
    metadata, spec = obj["metadata"], obj["spec"]
    metadata["labels"] = {**labels_of(obj), MANAGED: "true"}
    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, FINALIZER]
    wanted = [GATE, TOPOLOGY_GATE] if _TOPOLOGY & annotations_of(obj).keys() else [GATE]
    gates = spec.get("schedulingGates") or []
    known = {gate.get("name") for gate in gates}
    added = [{"name": name} for name in wanted if name not in known]
    if added:
        spec["schedulingGates"] = [*gates, *added]
    annotations = metadata.get("annotations") or {}
    # One for which a Workload was made already keeps the role that it has there.
    if labels_of(obj).get(NAME) and not (labels_of(obj).get(PREBUILT) and annotations.get(ROLE)):
        metadata["annotations"] = {**annotations, ROLE: role_hash(spec)}


def pass_on(obj: Object) -> None:
    """Have the pods of a Deployment wait in its queue."""
    labels = _member(_member(_member(obj["spec"], "template"), "metadata"), "labels")
    for name in (QUEUE, PRIORITY_CLASS):
        if labels_of(obj).get(name):
            labels[name] = labels_of(obj)[name]


def group_name_of(obj: Mapping[str, Json]) -> str:
    """The group that the pods of a StatefulSet are."""
    return workload_name("apps", "StatefulSet", obj["metadata"].get("name", ""), "")


def pass_on_as_group(obj: Object) -> None:
    """Have the pods of a StatefulSet wait together, and be admitted with the first."""
    pass_on(obj)
    metadata = _member(_member(obj["spec"], "template"), "metadata")
    _member(metadata, "labels")[NAME] = group_name_of(obj)
    annotations = _member(metadata, "annotations")
    annotations[TOTAL] = str(number(obj["spec"].get("replicas"), 1))
    annotations[FAST_ADMISSION] = annotations[SERVING] = "true"


def _member(part: Object, name: str) -> Object:
    found = part.get(name)
    if not isinstance(found, dict):
        found = part[name] = {}
    return found


def queue_change_problem(
    new: Mapping[str, Json], old: Mapping[str, Json], *, held: bool
) -> str | None:
    """Why the labels of an object that waits or runs may not be changed like this; None if they may."""
    if not held and queue_of(old) and queue_of(new) != queue_of(old):
        return f"metadata.labels[{QUEUE}]: the queue cannot change while the object runs: it is in {queue_of(old)}"
    before, after = labels_of(old).get(PREBUILT), labels_of(new).get(PREBUILT)
    if not held and before != after:
        return f"metadata.labels[{PREBUILT}]: the Workload that was made for it cannot be exchanged while the object runs"
    return None
