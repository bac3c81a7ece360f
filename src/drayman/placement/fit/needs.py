"""What a pod asks of the node it goes to.

Thousands of pods come from a few templates. The parts of the spec that matter for scheduling are worked out once for each distinct spec and
shared: the `PodShape`. A shape is compared by identity, so it is a key that costs nothing to hash, and whatever is true of a shape on a
node is true of all its pods. Labels, namespace and claims belong to each pod and are not part of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct, structs
from msgspec.structs import replace

from drayman.api.codec import encode
from drayman.api.core import Affinity, Container, Pod, Toleration, TopologySpreadConstraint
from drayman.bounded import Bounded
from drayman.placement.fit.node_choice import NodeChoice, node_choice
from drayman.placement.fit.ports import HostPort, host_ports
from drayman.placement.fit.requests import CPU, MEMORY, PODS, STORAGE, is_counted, requests_of

_NAMED: Final = (CPU, MEMORY, STORAGE, PODS)
_MOST_SIGNATURES: Final = 1 << 12
_MOST_ON_NODES: Final = 1 << 16


class VolumeRef(Struct, frozen=True):
    """A volume referred to through a claim: a named one, or one made for the pod and named after it and the volume."""

    claim: str
    ephemeral: bool = False


class PodShape(Struct, frozen=True, eq=False, weakref=True):
    """What the spec of a pod asks of nodes. Equal shapes are the same object; make them with `PodNeeds.of`."""

    cpu: int
    memory: int
    storage: int
    extended: tuple[tuple[str, int], ...]
    scoring_cpu: int
    scoring_memory: int
    pod_level: frozenset[str]
    ports: tuple[HostPort, ...]
    tolerations: tuple[Toleration, ...]
    node_name: str
    nodes: NodeChoice
    volumes: tuple[VolumeRef, ...]
    affinity: Affinity | None
    spread: tuple[TopologySpreadConstraint, ...]

    @property
    def by_name(self) -> bool:
        """Whether nodes that differ only in their name differ for this pod."""
        return self.nodes.by_name or bool(self.node_name)

    @property
    def depends_on_pods(self) -> bool:
        """Whether it matters to the pod where other pods are."""
        return self.affinity is not None or bool(self.spread)

    def leaves_room_of(self, former: PodShape) -> bool:
        """Whether a node has more of something left with a pod of this shape than with one of the former shape."""
        extended = dict(self.extended)
        return (
            self.cpu < former.cpu
            or self.memory < former.memory
            or self.storage < former.storage
            or any(extended.get(name, 0) < amount for name, amount in former.extended)
            or not set(self.ports).issuperset(former.ports)
        )


class PodNeeds(Struct, frozen=True):
    """A pod as node fit sees it."""

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    terminating: bool
    shape: PodShape

    @staticmethod
    def of(pod: Pod) -> PodNeeds:
        metadata = pod.metadata
        return PodNeeds(
            metadata.uid,
            metadata.namespace,
            metadata.name,
            metadata.labels,
            metadata.deletion_timestamp is not None,
            shape_of(pod),
        )

    @property
    def key(self) -> PodShape:
        """Equal for pods that nodes by themselves cannot distinguish."""
        return self.shape

    @property
    def neighbour_key(self) -> Hashable:
        """Equal for pods that neither nodes nor other pods can distinguish."""
        return self.shape, self.namespace, frozenset(self.labels.items())

    @property
    def bare_key(self) -> PodShape:
        """Equal for pods that are alike apart from their labels, their volumes and their rules about other pods."""
        shape = self.shape
        if not shape.volumes and not shape.depends_on_pods:
            return shape
        found = _bare.get(shape)
        if found is None:
            bare = replace(shape, volumes=(), affinity=None, spread=())
            found = _bare[shape] = _intern(bare)
        return found

    def plus(self, more: Mapping[str, int]) -> PodNeeds:
        """The pod including what its devices take of the node. Pod-level requests already include it."""
        return structs.replace(self, shape=_enlarged(self.shape, more))


_shapes: WeakValueDictionary[Hashable, PodShape] = WeakValueDictionary()
_models: Bounded[Hashable, PodShape] = Bounded(_MOST_SIGNATURES)  # by signature
_bare: Bounded[PodShape, PodShape] = Bounded(_MOST_SIGNATURES)  # without volumes and other pods
_on_node: Bounded[tuple[PodShape, str], PodShape] = Bounded(_MOST_ON_NODES)  # by model and node


def shape_of(pod: Pod) -> PodShape:
    signature, node_name = _signature(pod), pod.spec.node_name
    model = _models.get(signature)
    if model is None:
        model = _models[signature] = _intern(_work_out(pod))
    if model.node_name == node_name:
        return model
    # Pods of one template are on many nodes, and differ only in that.
    shape = _on_node.get((model, node_name))
    if shape is None:
        shape = _intern(replace(model, node_name=node_name))
        _on_node[model, node_name] = shape
    return shape


def _signature(pod: Pod) -> Hashable:
    """Everything that a shape is made from except the node, as cheap to compute as possible: equal for pods of one template."""
    spec = pod.spec
    claims = pod.status.node_allocatable_resource_claim_statuses
    spread = spec.topology_spread_constraints
    return (
        _container_signatures(spec.containers),
        _container_signatures(spec.init_containers) if spec.init_containers else (),
        spec.tolerations,
        tuple(spec.node_selector.items()) if spec.node_selector else (),
        tuple(spec.overhead.items()) if spec.overhead else (),
        None if spec.resources is None else tuple(spec.resources.requests.items()),
        None if spec.affinity is None else encode(spec.affinity),
        tuple([encode(constraint) for constraint in spread]) if spread else (),
        _volumes(pod) if spec.volumes else (),
        tuple([tuple(status.resources.items()) for status in claims]) if claims else (),
    )


def _container_signatures(containers: tuple[Container, ...]) -> Hashable:
    return tuple(
        [(tuple(c.resources.requests.items()), c.ports, c.restart_policy) for c in containers]
    )


def _work_out(pod: Pod) -> PodShape:
    spec = pod.spec
    requests = requests_of(pod)
    amounts = requests.amounts
    affinity = spec.affinity
    if affinity is not None and not (affinity.pod_affinity or affinity.pod_anti_affinity):
        affinity = None
    return PodShape(
        amounts.get(CPU, 0),
        amounts.get(MEMORY, 0),
        amounts.get(STORAGE, 0),
        _extended(amounts),
        requests.scoring_cpu,
        requests.scoring_memory,
        requests.pod_level,
        host_ports(spec),
        spec.tolerations,
        spec.node_name,
        node_choice(spec.node_selector, spec.affinity),
        _volumes(pod),
        affinity,
        spec.topology_spread_constraints,
    )


def _extended(amounts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(
        sorted(
            (name, amount)
            for name, amount in amounts.items()
            if amount and name not in _NAMED and is_counted(name)
        )
    )


def _volumes(pod: Pod) -> tuple[VolumeRef, ...]:
    found = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            found.append(VolumeRef(volume.persistent_volume_claim.claim_name))
        elif volume.ephemeral is not None:
            found.append(VolumeRef(volume.name, ephemeral=True))
    return tuple(found)


def _enlarged(shape: PodShape, more: Mapping[str, int]) -> PodShape:
    added = {name: amount for name, amount in more.items() if name not in shape.pod_level}
    extended = dict(shape.extended)
    for name, amount in added.items():
        if name not in _NAMED:
            extended[name] = extended.get(name, 0) + amount
    return _intern(
        replace(
            shape,
            cpu=shape.cpu + added.get(CPU, 0),
            memory=shape.memory + added.get(MEMORY, 0),
            storage=shape.storage + added.get(STORAGE, 0),
            extended=_extended(extended),
            scoring_cpu=shape.scoring_cpu + added.get(CPU, 0),
            scoring_memory=shape.scoring_memory + added.get(MEMORY, 0),
        )
    )


def _intern(shape: PodShape) -> PodShape:
    content = (
        (shape.cpu, shape.memory, shape.storage, shape.extended),
        (shape.scoring_cpu, shape.scoring_memory, shape.pod_level),
        (shape.ports, shape.node_name, shape.nodes, shape.volumes),
        frozenset((t.key, t.operator, t.value, t.effect) for t in shape.tolerations),
        None if shape.affinity is None else encode(shape.affinity),
        tuple(encode(constraint) for constraint in shape.spread),
    )
    return _shapes.setdefault(content, shape)
