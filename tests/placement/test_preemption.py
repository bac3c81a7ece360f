"""Who has to go so that a more important pod fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.demand import Demands
from drayman.placement.placing import Placer
from drayman.placement.preemption import Occupant, Preemption, Victims
from drayman.placement.state import ClusterState
from oracle.build import device_class, piece
from oracle.observed import seen_in

ALLOCATABLE = {"cpu": "4", "memory": "4Gi", "pods": "10"}
DEVICES = 3


class Crowd:
    """Nodes `n0`, `n1`, ... with three devices each, and the pods on them."""

    def __init__(self, nodes: int = 1) -> None:
        self.state = ClusterState(Features(), lambda _: None)
        self.state.set_class(convert(DeviceClass, device_class("gpu")))
        self.occupants: dict[str, list[Occupant]] = {}
        self.protected: set[str] = set()
        for number in range(nodes):
            name = f"n{number}"
            self.occupants[name] = []
            node = {"metadata": {"name": name}, "status": {"allocatable": ALLOCATABLE}}
            self.state.set_node(convert(Node, node))
            devices = [f"d{n}" for n in range(DEVICES)]
            made = piece(devices, pool=name, name=name, nodeName=name)
            self.state.set_slice(convert(ResourceSlice, made))

    def add(
        self,
        name: str,
        priority: int,
        *,
        cpu: int = 0,
        device: int | None = None,
        node: str = "n0",
        **metadata: Any,
    ) -> None:
        """A pod on a node, with CPUs and perhaps a device."""
        pod = make_pod(name, priority, cpu, node, **metadata)
        claims: tuple[ResourceClaim, ...] = ()
        if device is not None:
            claim = make_claim(
                f"claim-of-{name}",
                {"driver": "gpu.example.com", "pool": node, "device": f"d{device}"},
            )
            self.state.set_claim(claim)
            claims = (claim,)
        self.state.set_placed_pod(pod)
        self.occupants[node].append(Occupant(pod, claims))

    def victims(self, priority: int, *, cpu: int = 0, devices: int = 0) -> Victims | None:
        """Who goes for a pod of this priority."""
        search = Preemption(
            self.state, self.occupants.__getitem__, lambda pod: pod.metadata.name in self.protected
        )
        return search.victims(priority, list(self.state.nodes.values()), self.fits(cpu, devices))

    def fits(self, cpu: int, devices: int) -> Callable[[Any], bool]:
        claims = (make_claim("wanted", count=devices),) if devices else ()
        demand = Demands(self.state, 600.0).of(make_pod("new", 0, cpu), claims, 0.0)
        return lambda node: Placer(self.state, Policy.BEST).fits_on(demand, node)

    def seen(self) -> Any:
        """Everything that preemption could have changed."""
        sums = {
            name: (
                node.usage.cpu,
                node.usage.memory,
                dict(node.usage.extended),
                set(node.usage.pods),
            )
            for name, node in self.state.nodes.items()
        }
        return sums, seen_in(self.state.ledger)


def make_pod(name: str, priority: int, cpu: int, node: str = "", **status: Any) -> Pod:
    resources = {"requests": {"cpu": str(cpu)} if cpu else {}}
    spec = {
        "priority": priority,
        "nodeName": node,
        "containers": [{"name": "c", "resources": resources}],
    }
    metadata = {"name": name, "namespace": "default", "uid": name}
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": status})


def make_claim(name: str, result: dict[str, str] | None = None, count: int = 1) -> ResourceClaim:
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": wanted}]}}
    status = (
        {"allocation": {"devices": {"results": [{"request": "r", **result}]}}} if result else {}
    )
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
    return convert(ResourceClaim, {"metadata": metadata, "spec": spec, "status": status})


def names(found: Victims | None) -> list[str]:
    return [] if found is None else sorted(pod.metadata.name for pod in found.pods)


def test_nobody_goes_for_an_equal() -> None:
    """Only pods of lower priority are victims."""
    crowd = Crowd()
    crowd.add("a", 5, cpu=4)
    assert names(crowd.victims(5, cpu=1)) == []
    assert names(crowd.victims(6, cpu=1)) == ["a"]


def test_as_few_as_needed() -> None:
    """Who need not go stays, the most important first."""
    crowd = Crowd()
    for name, priority in (("a", 1), ("b", 2), ("c", 3), ("d", 4)):
        crowd.add(name, priority, cpu=1)
    assert names(crowd.victims(9, cpu=2)) == ["a", "b"]


def test_devices_count_like_cpu() -> None:
    """The pod that holds what is needed goes; one that holds none of it stays."""
    crowd = Crowd()
    crowd.add("bystander", 0, cpu=1)
    for number in range(DEVICES):
        crowd.add(f"holder-{number}", number + 1, device=number)
    assert names(crowd.victims(9, devices=1)) == ["holder-0"]
    assert names(crowd.victims(9, devices=2)) == ["holder-0", "holder-1"]


def test_nobody_goes_in_vain() -> None:
    """Where the pod would not fit even then, everybody stays."""
    crowd = Crowd()
    crowd.add("a", 0, cpu=4)
    assert names(crowd.victims(9, cpu=5)) == []
    assert names(crowd.victims(9, devices=DEVICES + 1)) == []


def test_protected_pods_are_spared_where_others_will_do() -> None:
    """Pods under a disruption budget are given back first, whatever their priority."""
    crowd = Crowd()
    crowd.add("protected", 1, cpu=2)
    crowd.add("open", 5, cpu=2)
    crowd.protected.add("protected")
    found = crowd.victims(9, cpu=2)
    assert names(found) == ["open"]
    assert found is not None
    assert found.violations == 0


def test_the_cheapest_node() -> None:
    """Fewest broken budgets, then the least important victims, then the fewest."""
    crowd = Crowd(3)
    crowd.add("protected", 0, cpu=4, node="n0")
    crowd.add("important", 7, cpu=4, node="n1")
    crowd.add("small", 3, cpu=2, node="n2")
    crowd.add("tiny", 3, cpu=2, node="n2")
    crowd.protected.add("protected")
    assert names(crowd.victims(9, cpu=4)) == ["small", "tiny"]
    assert names(crowd.victims(9, cpu=2)) in (["small"], ["tiny"])


def test_the_older_of_equals_stays() -> None:
    """Among pods of one priority those that started first are given back first."""
    crowd = Crowd()
    crowd.add("young", 1, cpu=2, startTime="2026-01-02T00:00:00Z")
    crowd.add("old", 1, cpu=2, startTime="2026-01-01T00:00:00Z")
    assert names(crowd.victims(9, cpu=2)) == ["young"]


_PODS = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 2), st.booleans(), st.integers(0, 1), st.booleans()
    ),
    max_size=7,
)


@given(_PODS, st.integers(1, 4), st.integers(0, 4), st.integers(0, 3))
def test_thinking_changes_nothing_and_no_victim_is_spare(
    pods: list[tuple[int, int, bool, int, bool]], priority: int, cpu: int, devices: int
) -> None:
    """The state is what it was before. Without the victims the pod fits; with any one of them back it does not."""
    crowd = Crowd(2)
    free = {f"n{n}": list(range(DEVICES)) for n in range(2)}
    for number, (rank, cpus, has_device, node, is_protected) in enumerate(pods):
        where = f"n{node}"
        device = free[where].pop() if has_device and free[where] else None
        crowd.add(f"p{number}", rank, cpu=cpus, device=device, node=where)
        if is_protected:
            crowd.protected.add(f"p{number}")
    before = crowd.seen()
    found = crowd.victims(priority, cpu=cpu, devices=devices)
    assert crowd.seen() == before
    if found is None:
        return
    fits = crowd.fits(cpu, devices)
    node = crowd.state.nodes[found.node]
    gone = [o for o in crowd.occupants[found.node] if o.pod in found.pods]
    assert all(o.priority < priority for o in gone)
    for occupant in gone:
        _remove(crowd, occupant)
    assert fits(node)
    for occupant in gone:
        _put_back(crowd, occupant)
        assert not fits(node), f"{occupant.pod.metadata.name} need not go"
        _remove(crowd, occupant)


def _remove(crowd: Crowd, occupant: Occupant) -> None:
    crowd.state.remove_pod(occupant.pod.metadata.uid)
    for claim in occupant.claims:
        crowd.state.remove_claim(claim)


def _put_back(crowd: Crowd, occupant: Occupant) -> None:
    crowd.state.set_placed_pod(occupant.pod)
    for claim in occupant.claims:
        crowd.state.set_claim(claim)
