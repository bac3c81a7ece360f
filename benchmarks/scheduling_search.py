"""What a scheduler asks of inventory, search and ledger, pod after pod, without an API: the DRA workloads of scheduler_perf.

    scheduling_search.py [--only NAME,...] [--policy first-fit|best] [--most N] [--profile]

Each workload has the nodes, slices, classes and claims of its namesake in `workloads`. For each pod a node is taken in turn, its view
made, the claim searched for and the plan committed; where the workload keeps a steady state, the oldest claim is released as well.
Only that is on the clock. One JSON line per workload and policy; the exit status is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from drayman.allocator import Plan, Policy, Question, search
from drayman.api.core import Node
from drayman.api.resource import ResourceClaim
from drayman.inventory import Inventory, Ledger
from measure import percentile, report
from workloads import WORKLOADS, Workload

LOCAL_BAR_US = 200.0
FLOATING_BAR_US = 1500.0
_WARM_UP = 20


@dataclass(slots=True)
class Run:
    """One workload under one policy."""

    workload: Workload
    policy: Policy
    inventory: Inventory
    ledger: Ledger
    nodes: tuple[Node, ...]

    @classmethod
    def prepare(cls, workload: Workload, policy: Policy) -> Run:
        inventory, ledger = Inventory(), Ledger()
        for device_class in workload.classes:
            inventory.apply_class(device_class)
        for slice_ in workload.slices:
            inventory.apply_slice(slice_)
        for rule in workload.rules:
            inventory.apply_taint_rule(rule)
        run = cls(workload, policy, inventory, ledger, workload.nodes)
        for node in workload.nodes:
            inventory.view(node, ledger)
        for claim, node in zip(workload.preallocated, run._in_turn(), strict=False):
            run.place(node, Question((claim,)))
        return run

    def _in_turn(self) -> Iterator[Node]:
        while True:
            yield from self.nodes

    def place(self, node: Node, question: Question) -> None:
        outcome = search(self.inventory.view(node, self.ledger), question, policy=self.policy)
        if not isinstance(outcome, Plan):
            raise SystemExit(
                f"{self.workload.name}: no allocation on {node.metadata.name}: {outcome}"
            )
        self.ledger.commit(outcome)

    def timed(self, most: int) -> list[float]:
        """Microseconds of CPU for each pod."""
        held: deque[ResourceClaim] = deque()
        questions: dict[int, Question] = {}
        taken: list[float] = []
        # A server that has read its cluster would do the same: walking all slices again and again tells the collector nothing.
        gc.collect()
        gc.freeze()
        claims = self.workload.claims(min(most, self.workload.pods) + _WARM_UP)
        for (shape, claim), node in zip(claims, self._in_turn(), strict=False):
            begun = time.thread_time_ns()
            known = questions.get(shape)
            if known is None:
                known = questions[shape] = Question((claim,))
            self.place(node, known.asked_for((claim,)))
            held.append(claim)
            if self.workload.kept is not None and len(held) > self.workload.kept:
                self.ledger.release(held.popleft())
            taken.append((time.thread_time_ns() - begun) / 1e3)
        return taken[_WARM_UP:]


def measure(workload: Workload, policy: Policy, most: int) -> bool:
    bar = FLOATING_BAR_US if workload.is_floating else LOCAL_BAR_US
    taken = Run.prepare(workload, policy).timed(most)
    mean = sum(taken) / len(taken)
    report(
        bench="scheduling_search",
        workload=workload.name,
        policy=policy.value,
        searches=len(taken),
        searches_per_s=round(1e6 / mean),
        mean_us=mean,
        median_us=percentile(taken, 0.5),
        p99_us=percentile(taken, 0.99),
        bar_us=bar,
        met=mean <= bar,
    )
    return mean <= bar


def main() -> int:
    parser = argparse.ArgumentParser(description="Search and commit, pod after pod.")
    parser.add_argument("--only", default="")
    parser.add_argument("--policy", choices=[policy.value for policy in Policy])
    parser.add_argument("--most", type=int, default=1_000, help="pods to measure, at the most")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name] or list(WORKLOADS)
    policies = [Policy(options.policy)] if options.policy else list(Policy)
    met = True
    for name in names:
        workload = WORKLOADS[name]()
        for policy in policies:
            if not options.profile:
                met = measure(workload, policy, options.most) and met
                continue
            run = Run.prepare(workload, policy)
            with cProfile.Profile() as profile:
                run.timed(options.most)
            pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(28)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
