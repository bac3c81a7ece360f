"""The cluster of a trace while tasks come and go: places them, ends them, and counts what they have.

Placing is the decision of the scheduler on a state like its own (`placement`); claims are written and confirmed as it would do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from drayman.api.resource import ResourceClaim
from drayman.placement.decision.placements import Placement
from drayman.placement.prices import PriceTable
from drayman.simulate.trace.objects import claim_of, cluster_of, pod_of
from drayman.simulate.trace.policies import POLICIES, Draw
from drayman.simulate.trace.rooms import NodeRoom
from drayman.simulate.trace.tables import TaskKind, Trace


@dataclass(slots=True, eq=False)
class Running:
    """A task that has a place."""

    name: str
    kind: TaskKind
    node: str
    claims: tuple[ResourceClaim, ...]


@dataclass(slots=True)
class Aligned:
    """Tasks with several GPUs on nodes that say where their GPUs are."""

    tasks: int = 0
    best: int = 0
    """Of these, tasks whose GPUs are on as few NUMA nodes as can be."""


class Ground:
    """One cluster that a policy fills."""

    def __init__(self, trace: Trace, policy: str, draw: Draw, prices: PriceTable) -> None:
        self.state = cluster_of(trace.nodes, prices)
        self.allocated = 0
        """In thousandths of GPUs."""
        self.aligned = Aligned()
        self._chooser = POLICIES[policy](self.state, draw)
        self._nodes = {node.name: node for node in trace.nodes}

    def place(self, name: str, kind: TaskKind, now: float) -> Running | None:
        """Give a task a node and GPUs; None if none takes it."""
        if kind.gpus:
            claim = claim_of(name, kind)
            self.state.set_claim(claim)
        outcome = self._chooser.place(pod_of(name, kind), now)
        if not isinstance(outcome, Placement):
            if kind.gpus:
                self.state.remove_claim(claim)
            return None
        written = [_written(each) for each in outcome.claims]
        for each in written:
            self.state.confirm_claim(each)
        self.allocated += kind.total_milli
        running = Running(name, kind, outcome.node, tuple(written))
        self._note_alignment(running)
        return running

    def end(self, running: Running) -> None:
        """A task has ended: what it had is free."""
        self.state.remove_pod(running.name)
        for claim in running.claims:
            self.state.remove_claim(claim)
        self.allocated -= running.kind.total_milli

    def rooms(self) -> Iterator[NodeRoom]:
        """What is left of each node."""
        for name, node in self.state.nodes.items():
            shape, usage = node.facts.shape, node.usage
            devices = self.state.view(node).usage
            lefts: list[int] = []
            for _, left, found in devices.capacity_groups:
                lefts += [int(left[0])] * found.bit_count()
            yield NodeRoom(
                self._nodes[name].model,
                shape.cpu - usage.cpu,
                shape.memory - usage.memory,
                tuple(sorted(lefts)),
            )

    def nodes_in_use(self) -> Iterable[str]:
        return (name for name, node in self.state.nodes.items() if node.usage.pods)

    def price_of(self, name: str) -> int | None:
        """Of a node by the hour, in millionths; None if it has none."""
        return self.state.nodes[name].offer.price

    def _note_alignment(self, running: Running) -> None:
        node = self._nodes[running.node]
        if running.kind.gpus < 2 or not node.numa:
            return
        each = node.gpus // node.numa
        used = {
            _position(result.device) // each for c in running.claims for result in c.status.results
        }
        self.aligned.tasks += 1
        self.aligned.best += len(used) <= -(-running.kind.gpus // each)


def _position(device: str) -> int:
    return int(device.rpartition("-")[2])


def _written(claim: ResourceClaim) -> ResourceClaim:
    """A claim as the server would have stored it."""
    version = str(int(claim.metadata.resource_version) + 1)
    return replace(claim, metadata=replace(claim.metadata, resource_version=version))
