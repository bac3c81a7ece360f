"""A cluster queue in the engine: what its object says, its place in the tree, who holds its quota and who waits for it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from drayman.api.kueue import ClusterQueueSpec, FlavorQuotas, ResourceGroup
from drayman.api.labels import LabelMatcher, compile_selector
from drayman.quota.entries import Entry
from drayman.quota.tree.nodes import Node
from drayman.quota.waiting import Waiting

USAGE_BASED: Final = "UsageBasedAdmissionFairSharing"
NEVER: Final = "Never"
LOWER_PRIORITY: Final = "LowerPriority"
NEWER_TOO: Final = "LowerOrNewerEqualPriority"
ANY: Final = "Any"
STRICT: Final = "StrictFIFO"
HOLD: Final = "Hold"
DRAIN: Final = "HoldAndDrain"


class ClusterQueueState:
    """One cluster queue. The engine (`quota/state.py`) keeps it up to date."""

    __slots__ = (
        "admitted",
        "changes",
        "flavors",
        "groups",
        "holders",
        "inactive",
        "leaving",
        "name",
        "node",
        "sends_elsewhere",
        "serves",
        "spec",
        "waiting",
    )

    def __init__(self, name: str, spec: ClusterQueueSpec) -> None:
        self.name = name
        self.node: Node | None = None
        """None where its cohorts form a circle."""
        self.holders: dict[str, Entry] = {}
        self.changes = 0
        """Grows when workloads get or give up its quota, and when its tree is built anew."""
        self.inactive: str = ""
        """Why it is not active, as its condition says it; empty if it is."""
        self.sends_elsewhere = False
        """Whether its pods run in another cluster, by one of its checks."""
        self.leaving = False
        """Whether it is being deleted, and stays only for those that hold its quota."""
        self.set_spec(spec)

    def set_spec(self, spec: ClusterQueueSpec) -> None:
        """Follow a change of the object. Raises SelectorError for a selector that cannot be understood."""
        selector = spec.namespace_selector
        self.serves: LabelMatcher | None = None if selector is None else compile_selector(selector)
        self.spec = spec
        self.groups: dict[str, ResourceGroup] = {
            resource: group
            for group in spec.resource_groups
            for resource in group.covered_resources
        }
        self.flavors: dict[str, FlavorQuotas] = {
            flavor.name: flavor for group in spec.resource_groups for flavor in group.flavors
        }
        strict = spec.queueing_strategy == STRICT
        if not hasattr(self, "waiting"):
            self.waiting = Waiting(strict=strict)
        self.waiting.strict = strict

    @property
    def place(self) -> Node:
        """Its node, where it is known to have one."""
        if self.node is None:
            raise LookupError(f"cluster queue {self.name} has no place in the tree")
        return self.node

    @property
    def shares_by_past_use(self) -> bool:
        """Whether its local queues come in the order of what they used."""
        scope = self.spec.admission_scope
        return scope is not None and scope.admission_mode == USAGE_BASED

    def checks_for(self, flavors: Collection[str]) -> list[str]:
        """The names of the admission checks that it has for flavors."""
        strategy = self.spec.admission_checks_strategy
        return [
            rule.name
            for rule in (strategy.admission_checks if strategy is not None else ())
            if not rule.on_flavors or not set(rule.on_flavors).isdisjoint(flavors)
        ]

    @property
    def borrows_by_force(self) -> bool:
        """Whether it may preempt others and still borrow afterwards, apart from fair sharing."""
        policy = self.spec.preemption.borrow_within_cohort
        return policy is not None and policy.policy != NEVER

    @property
    def force_threshold(self) -> int | None:
        """The highest priority of those that it may preempt while it borrows."""
        policy = self.spec.preemption.borrow_within_cohort
        return None if policy is None else policy.max_priority_threshold

    def __repr__(self) -> str:
        return f"cluster queue {self.name}"
