"""A large cluster in one inventory: loading, one update, and a search that must not notice the size.

    scale.py [--nodes 1,10,100,1000]

Nodes are DGX H100 with dynamic MIG, two ports per network card and a compute domain: 11 slices and 226 devices each. Every size is
measured in a process of its own, so that peak memory is that of the inventory and what it makes. One JSON line per figure;
ratios compare with the smallest cluster of the same run. The exit status is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import msgspec

from drayman.allocator import Plan, Policy, search
from drayman.api.codec import convert, decode, encode
from drayman.api.core import Node
from drayman.api.resource import DeviceClass, DeviceTaint, ResourceClaim, ResourceSlice
from drayman.drivers.profiles import dgx_h100
from drayman.inventory import Inventory, Ledger
from measure import cpu_ms, percentile, report

LOAD_BAR_S = 30.0
MEMORY_BAR_MIB = 2048.0
UPDATE_BAR_MS = 5.0
SEARCH_RATIO_BAR = 1.5
"""A search on one node of a thousand may differ from one on a single node by noise only."""
_UPDATES = 200

_CLAIM = {
    "metadata": {"name": "pair", "namespace": "default"},
    "spec": {
        "devices": {
            "requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 2}},
                {"name": "nic", "exactly": {"deviceClassName": "dranet", "allocationMode": "ExactCount", "count": 2}},
            ],
        }
    },
}  # fmt: skip


def write_cluster(path: Path, nodes: int) -> None:
    """The slices of a cluster, one JSON object a line, then its classes and one node."""
    with path.open("wb") as out:
        for number in range(nodes):
            hardware = dgx_h100(name_of(number), mig=True, ports_per_nic=2, compute_domain=True)
            for slice_ in hardware.slices:
                out.write(encode(slice_) + b"\n")
        for device_class in hardware.classes:
            out.write(encode(device_class) + b"\n")


def name_of(number: int) -> str:
    return f"dgx-{number:04}"


def measure(path: Path, nodes: int) -> dict[str, Any]:
    """All figures of one cluster."""
    inventory = Inventory()
    begun, begun_cpu = time.perf_counter(), time.process_time()
    slices = devices = 0
    sample: list[bytes] = []
    with path.open("rb") as lines:
        for line in lines:
            if b'"kind":"DeviceClass"' in line:
                inventory.apply_class(decode(DeviceClass, line))
                continue
            slice_ = decode(ResourceSlice, line)
            inventory.apply_slice(slice_)
            slices += 1
            devices += len(slice_.spec.devices or ())
            if slice_.spec.devices and slice_.spec.node_name == name_of(nodes // 2):
                sample.append(line)
    figures: dict[str, Any] = {
        "slices": slices,
        "devices": devices,
        "load_s": time.perf_counter() - begun,
        "load_cpu_s": time.process_time() - begun_cpu,
    }
    node = Node(metadata=msgspec.structs.replace(Node().metadata, name=name_of(nodes // 2)))
    ledger = Ledger()
    figures |= measure_search(inventory, node, ledger)
    figures |= measure_updates(inventory, node, ledger, sample)
    figures["peak_mib"] = peak_mib()
    for number in range(nodes):
        inventory.view(
            Node(metadata=msgspec.structs.replace(node.metadata, name=name_of(number))), ledger
        )
    figures["peak_with_every_view_mib"] = peak_mib()
    return figures


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_search(inventory: Inventory, node: Node, ledger: Ledger) -> dict[str, float]:
    """A GPU pair with its NICs on one node: the view made anew, then the search under both policies."""
    claims = [convert(ResourceClaim, _CLAIM)]
    view_ms, view = cpu_ms(lambda: inventory.view(node, ledger), runs=1)
    figures = {"first_view_ms": view_ms}
    for policy in Policy:
        outcome = search(view, claims, policy=policy)
        if not isinstance(outcome, Plan):
            raise SystemExit(f"no allocation on {node.metadata.name}: {outcome}")

        def ask(policy: Policy = policy) -> object:
            return search(inventory.view(node, ledger), claims, policy=policy)

        figures[f"search_{policy.value}_ms"], _ = cpu_ms(ask, runs=20)
    return figures


def measure_updates(
    inventory: Inventory, node: Node, ledger: Ledger, sample: list[bytes]
) -> dict[str, float]:
    """Slices of one node, each changed by a taint, decoded before the clock starts."""
    random = Random(0)
    alone, with_view = [], []
    for number in range(_UPDATES):
        changed = tainted(decode(ResourceSlice, random.choice(sample)), number)
        ms, _ = cpu_ms(lambda changed=changed: inventory.apply_slice(changed), runs=1)  # type: ignore[misc]
        alone.append(ms)
        ms, _ = cpu_ms(lambda: inventory.view(node, ledger), runs=1)
        with_view.append(alone[-1] + ms)
    return {
        "update_median_ms": median(alone),
        "update_p99_ms": percentile(alone, 0.99),
        "update_and_view_p99_ms": percentile(with_view, 0.99),
    }


def tainted(slice_: ResourceSlice, number: int) -> ResourceSlice:
    taint = DeviceTaint(key="bench.example.com/seen", value=str(number), effect="None")
    first, *rest = slice_.spec.devices or ()
    first = msgspec.structs.replace(first, taints=(taint,))
    spec = msgspec.structs.replace(slice_.spec, devices=(first, *rest))
    return msgspec.structs.replace(slice_, spec=spec)


def in_own_process(nodes: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "slices.jsonl"
        write_cluster(path, nodes)
        command = [sys.executable, __file__, "--measure", str(path), "--nodes", str(nodes)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout))


def bars(figures: dict[str, Any], first: dict[str, Any]) -> dict[str, bool]:
    ratios = [figures[name] / first[name] for name in figures if name.startswith("search_")]
    return {
        # What loading puts off, the first view does.
        "load_met": figures["load_s"] + figures["first_view_ms"] / 1e3 <= LOAD_BAR_S,
        "memory_met": figures["peak_with_every_view_mib"] <= MEMORY_BAR_MIB,
        "update_met": figures["update_p99_ms"] <= UPDATE_BAR_MS,
        "search_met": max(ratios) <= SEARCH_RATIO_BAR,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Load, update and search of a large cluster.")
    parser.add_argument("--nodes", default="1,10,100,1000")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(size) for size in options.nodes.split(",")]
    if options.measure:
        report(**measure(options.measure, sizes[0]))
        return 0
    met = True
    first: dict[str, Any] = {}
    for nodes in sizes:
        figures = in_own_process(nodes)
        first = first or figures
        verdicts = bars(figures, first)
        met = met and all(verdicts.values())
        for name, value in figures.items():
            ratio = value / first[name] if first[name] else None
            report(bench="scale", nodes=nodes, figure=name, value=value, ratio=ratio)
        report(bench="scale", nodes=nodes, **verdicts)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
