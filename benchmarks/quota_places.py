"""What admission asks of topologies and of the search for room, workload after workload, without an API.

    quota_places.py [--workloads N] [--only topology,room]

`topology`: the load of Kueue's own benchmark of topologies: 640 nodes in 10 racks, workloads of 2, 4 and 8 pods that require a rack, prefer
one, are spread evenly, or may be anywhere. `room`: 500 nodes with 8 devices each, workloads of 1 to 4 pods with one or two devices, none of
which is bound. When there is no room, some that have room end. One JSON line for each.

`fresh_ratio` is how much longer a question takes if everything is counted again for it: what keeping counts (`topology/counting.py`) gains.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable

from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.kueue import pod_template_of
from drayman.api.kueue_workload import TopologyRequest
from drayman.api.resource import DeviceClass, ResourceClaimTemplate, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState
from drayman.quota.demands import NotPlaced, Placement, TopologyDemand
from drayman.quota.fitting.book import RoomBook
from drayman.quota.fitting.expecting import PodSetPods, WorkloadPods
from drayman.quota.fitting.fitter import Fitter, Unfit
from drayman.quota.topology.flavor import FlavorTopology
from drayman.quota.topology.usage import DomainUsage
from measure import report

RACK, HOST = "example.com/rack", "kubernetes.io/hostname"
RACKS, HOSTS = 10, 64
ENDING = 20
"""How many end when there is no room."""
REQUESTS = {
    "required": TopologyRequest(required=RACK),
    "preferred": TopologyRequest(preferred=RACK),
    "balanced": TopologyRequest(preferred=RACK),
    "unconstrained": TopologyRequest(unconstrained=True),
}


def make_node(name: str, cpu: int, rack: str) -> Node:
    status = {
        "allocatable": {"cpu": str(cpu), "memory": "512Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    labels = {HOST: name, RACK: rack}
    return convert(Node, {"metadata": {"name": name, "labels": labels}, "status": status})


def topology_of(*, is_balanced: bool) -> FlavorTopology:
    found = FlavorTopology("benchmark", (RACK, HOST), {}, is_balanced=is_balanced)
    for rack in range(RACKS):
        for host in range(HOSTS):
            found.set_node(make_node(f"r{rack:02}-{host:02}", 8, f"r{rack:02}"), {})
    return found


def in_topology(mode: str, number: int) -> None:
    chance = random.Random(1)
    topology, used = topology_of(is_balanced=mode == "balanced"), DomainUsage()
    held: list[tuple[Placement, TopologyDemand]] = []
    refused, begun = 0, time.thread_time()
    for _ in range(number):
        asked = TopologyDemand(
            "main", chance.choice((2, 4, 8)), {"cpu": 1000}, {}, None, (), REQUESTS[mode]
        )
        while isinstance(found := topology.place([asked], used), NotPlaced):
            refused += 1
            for _ in range(ENDING):
                placement, former = held.pop(chance.randrange(len(held)))
                used.remove(placement, former.per_pod)
        held.append((found["main"], asked))
        used.add(found["main"], asked.per_pod)
    seconds = time.thread_time() - begun
    report(
        benchmark="quota topology",
        mode=mode,
        nodes=RACKS * HOSTS,
        workloads=number,
        refusals=refused,
        per_s=(number + refused) / seconds,
        fresh_ratio=_fresh(topology, used, mode) / (seconds / (number + refused)),
    )


def _fresh(topology: FlavorTopology, used: DomainUsage, mode: str) -> float:
    """Seconds for a question if nothing is known."""
    asked = TopologyDemand("main", 4, {"cpu": 1000}, {}, None, (), REQUESTS[mode])
    rounds, begun = 20, time.thread_time()
    for _ in range(rounds):
        topology.forget_counts()
        topology.place([asked], used)
    return (time.thread_time() - begun) / rounds


def state_of(nodes: int) -> ClusterState:
    state = ClusterState(Features(), lambda _: None)
    state.set_class(convert(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {}}))
    for name, count in (("one", 1), ("two", 2)):
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
        request = {"name": "gpu", "exactly": exactly}
        spec = {"spec": {"devices": {"requests": [request]}}}
        metadata = {"name": name, "namespace": "default"}
        state.set_template(convert(ResourceClaimTemplate, {"metadata": metadata, "spec": spec}))
    for number in range(nodes):
        name = f"n{number:03}"
        state.set_node(make_node(name, 64, "r"))
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{each}"} for each in range(8)]
        spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices}
        state.set_slice(convert(ResourceSlice, {"metadata": {"name": name}, "spec": spec}))
    return state


def room(number: int, nodes: int = 500) -> None:
    chance = random.Random(1)
    state = state_of(nodes)
    book = RoomBook(state)
    fitter = Fitter(state, book)
    held: list[str] = []
    pods, refused, begun = 0, 0, time.thread_time()
    for each in range(number):
        entry = {"name": "gpu", "resourceClaimTemplateName": chance.choice(("one", "one", "two"))}
        container = {"name": "main", "resources": {"claims": [{"name": "gpu"}]}}
        template = {"spec": {"containers": [container], "resourceClaims": [entry]}}
        count = chance.choice((1, 1, 2, 4))
        wanted = WorkloadPods(
            "default", f"w{each}", (PodSetPods("main", count, pod_template_of(template)),)
        )
        while isinstance(found := fitter.fit(wanted, 0.0), Unfit):
            refused += 1
            for _ in range(ENDING):
                book.release(held.pop(chance.randrange(len(held))))
        book.keep(found)
        held.append(found.key)
        pods += count
    seconds = time.thread_time() - begun
    report(
        benchmark="quota room",
        nodes=nodes,
        devices=nodes * 8,
        workloads=number,
        refusals=refused,
        per_s=number / seconds,
        pods_per_s=pods / seconds,
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workloads", type=int, default=15_000)
    parser.add_argument("--only", default="topology,room")
    given = parser.parse_args(arguments)
    parts: dict[str, Callable[[], None]] = {
        "topology": lambda: [in_topology(mode, given.workloads) for mode in REQUESTS] and None,
        "room": lambda: room(given.workloads),
    }
    for name in given.only.split(","):
        parts[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
