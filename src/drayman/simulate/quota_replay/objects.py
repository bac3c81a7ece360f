"""The objects of a scenario as an API server would keep them, and what the engine is told of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from drayman.api import codec
from drayman.api.core import Namespace, Node
from drayman.api.custom_groups import KueueTopology
from drayman.api.kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Workload
from drayman.api.limit_ranges import LimitRange
from drayman.api.struct import Json
from drayman.quota.state import QuotaState
from drayman.simulate.quota_replay.devices import ScenarioDevices
from drayman.simulate.quota_replay.scenario import Object, ScenarioError, Target

Key = tuple[str, str, str]
"""Kind, namespace and name."""

_ORDER: Final = (
    "Namespace",
    "LimitRange",
    "Topology",
    "Node",
    "ResourceFlavor",
    "Cohort",
    "ClusterQueue",
    "LocalQueue",
    "Workload",
)
"""In which the engine hears of objects that are there at the same time: what others depend on comes first."""


class Objects:
    """All objects. The engine follows them."""

    def __init__(self, state: QuotaState, devices: ScenarioDevices) -> None:
        self._state = state
        self._devices = devices
        self._objects: dict[Key, Object] = {}
        default = {"kubernetes.io/metadata.name": "default"}
        self.create(
            [{"kind": "Namespace", "metadata": {"name": "default", "labels": default}}], 0.0
        )

    def create(self, objects: Iterable[Object], now: float) -> None:
        """Objects that nobody sees before all of them are there."""
        keys = []
        for each in objects:
            key = key_of(each)
            self._objects[key] = each
            keys.append(key)
        for key in sorted(keys, key=lambda each: _rank(each[0])):
            self._tell(key, now)

    def patch(self, target: Target, now: float) -> None:
        key = self._known(target)
        self._objects[key] = merged(self._objects[key], target.body)
        self._tell(key, now)

    def delete(self, target: Target, now: float) -> None:
        value = self._objects.pop(self._known(target))
        if self._devices.knows(target.kind):
            self._devices.remove(value)
        else:
            _REMOVING.get(target.kind, _ignore)(self._state, target.namespace, target.name, now)

    def _known(self, target: Target) -> Key:
        """The key of an object that is there. Raises ScenarioError."""
        key = (target.kind, target.namespace, target.name)
        if key not in self._objects:
            name = "/".join(part for part in key[1:] if part)
            raise ScenarioError(f"there is no {target.kind} {name}")
        return key

    def finish(self, target: Target) -> str:
        """The key of a workload that ends. Raises ScenarioError."""
        self._known(target)
        return f"{target.namespace}/{target.name}"

    def price_again(self, now: float) -> None:
        """Have all be priced again that have no quota yet: the devices may be others."""
        for key, entry in tuple(self._state.entries.items()):
            if entry.holding is None:
                namespace, _, name = key.partition("/")
                self._tell(("Workload", namespace, name), now)

    def workloads(self) -> Iterator[tuple[str, Workload]]:
        """All workloads, by key."""
        for kind, namespace, name in sorted(self._objects):
            if kind == "Workload":
                yield f"{namespace}/{name}", self.workload(f"{namespace}/{name}")

    def workload(self, key: str) -> Workload:
        namespace, _, name = key.partition("/")
        return codec.convert(Workload, self._objects["Workload", namespace, name])

    def write_status(self, key: str, status: Json, now: float) -> bool:
        """Whether the status is another one than before."""
        namespace, _, name = key.partition("/")
        place = ("Workload", namespace, name)
        if self._objects[place].get("status") == status:
            return False
        self._objects[place] = {**self._objects[place], "status": status}
        self._tell(place, now)
        return True

    def _tell(self, key: Key, now: float) -> None:
        if self._devices.knows(key[0]):
            self._devices.set(self._objects[key])
        else:
            _SETTING.get(key[0], _pass)(self._state, self._objects[key], now)


def key_of(value: Object) -> Key:
    metadata = value["metadata"]
    return value["kind"], metadata.get("namespace", ""), metadata["name"]


def merged(value: Any, patch: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), part)
    return result


def _rank(kind: str) -> int:
    return _ORDER.index(kind) if kind in _ORDER else -1


def _pass(state: QuotaState, value: Object, now: float) -> None:
    """A kind that quota does not depend on."""


def _ignore(state: QuotaState, namespace: str, name: str, now: float) -> None:
    """A kind that quota does not depend on."""


_SETTING: Final[dict[str, Callable[[QuotaState, Object, float], None]]] = {
    "Namespace": lambda state, value, now: state.set_namespace(codec.convert(Namespace, value)),
    "LimitRange": lambda state, value, now: state.set_limit_range(codec.convert(LimitRange, value)),
    "ResourceFlavor": lambda state, value, now: state.set_flavor(
        codec.convert(ResourceFlavor, value)
    ),
    "Topology": lambda state, value, now: state.set_topology(codec.convert(KueueTopology, value)),
    "Node": lambda state, value, now: state.set_node(codec.convert(Node, value)),
    "Cohort": lambda state, value, now: state.set_cohort(codec.convert(Cohort, value)),
    "ClusterQueue": lambda state, value, now: state.set_cluster_queue(
        codec.convert(ClusterQueue, value), now
    ),
    "LocalQueue": lambda state, value, now: state.set_local_queue(
        codec.convert(LocalQueue, value), now
    ),
    "Workload": lambda state, value, now: state.set_workload(codec.convert(Workload, value), now),
}
_REMOVING: Final[dict[str, Callable[[QuotaState, str, str, float], None]]] = {
    "Namespace": lambda state, namespace, name, now: state.remove_namespace(name),
    "LimitRange": lambda state, namespace, name, now: state.remove_limit_range(namespace, name),
    "ResourceFlavor": lambda state, namespace, name, now: state.remove_flavor(name),
    "Topology": lambda state, namespace, name, now: state.remove_topology(name),
    "Node": lambda state, namespace, name, now: state.remove_node(name),
    "Cohort": lambda state, namespace, name, now: state.remove_cohort(name),
    "ClusterQueue": lambda state, namespace, name, now: state.remove_cluster_queue(name),
    "LocalQueue": lambda state, namespace, name, now: state.remove_local_queue(
        namespace, name, now
    ),
    "Workload": lambda state, namespace, name, now: state.remove_workload(f"{namespace}/{name}"),
}
