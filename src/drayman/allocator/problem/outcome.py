"""What a search answers: a plan, a refusal with its reasons, a fault, or that it ran out of steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from drayman.allocator.problem.question import Question
from drayman.allocator.problem.stated import AlignedRequests
from drayman.api.resource import AllocationResult, ResourceClaim
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.view import NodeView


class Finality(Enum):
    """How final a refusal is. The three must not be mixed: each calls for something else."""

    NEVER = "never"  # this node could not serve the claims even if nothing were in use
    NOT_NOW = "not now"  # it could, if enough of what is in use were given back
    NOT_HERE = "not here"  # enough is free, but scattered or misaligned


class RejectionReason(Enum):
    """Why a device does not serve a request, or why those that do are not enough. In the order in which they are tested."""

    NO_DEVICES = "NoDevices"  # the node has none at all
    CLASS_SELECTOR = "ClassSelector"  # a selector of the device class says no
    REQUEST_SELECTOR = "RequestSelector"  # a selector of the request says no
    SELECTOR_FAILED = "SelectorFailed"  # a selector cannot be evaluated on the device
    NODE_SELECTION = "NodeSelection"  # the device belongs to other nodes
    BINDING_CONDITIONS = "BindingConditions"  # it has binding conditions, which are switched off
    IN_USE = "InUse"  # it is held already
    TAINTED = "Tainted"  # it has a taint that is not tolerated
    CAPACITY = "Capacity"  # it does not have, or no longer has, the capacity asked for
    COUNTERS = "Counters"  # what it is a part of is used up
    NO_ATTRIBUTE = "NoAttribute"  # it lacks an attribute that a constraint compares
    COUNT = "Count"  # it would serve, but there are fewer such devices than asked for
    CONSTRAINT = "Constraint"  # it would serve, but no combination meets the constraints
    COMBINATION = "Combination"  # each request could be served alone, not all of them together
    TOO_MANY = "TooMany"  # the claim would get more devices than a claim may have


class Rejection(Struct, frozen=True):
    """Devices that drop out of a request at one test, and how many remain after it."""

    claim: str  # namespace/name
    request: str  # request, or request/subrequest
    reason: RejectionReason
    devices: tuple[DeviceId, ...]
    remaining: int
    wanted: int
    detail: str = ""

    @property
    def count(self) -> int:
        return len(self.devices)


class ClaimPlan(Struct, frozen=True):
    """A claim and what it is to get."""

    claim: ResourceClaim
    allocation: AllocationResult


class SelectorWarning(Struct, frozen=True):
    """Something went wrong on a device without affecting the answer."""

    device: DeviceId
    request: str
    message: str


class Cost(NamedTuple):
    """What an allocation costs by rules 2 to 8 of `objective`; lower is better."""

    rungs: tuple[int, ...]
    fabrics: int
    far: int
    near: int
    numa_nodes: int
    roots: int
    spoiled: int
    opened: int
    broken_fabrics: int
    broken_numa_nodes: int
    broken_roots: int


class ReachedLevel(Struct, frozen=True):
    """What a stated alignment has come to."""

    stated: AlignedRequests
    rung: int
    """The index of the level in the ladder."""

    @property
    def level(self) -> str:
        return str(self.stated.ladder.rungs[self.rung])

    @property
    def score(self) -> int:
        """From 100 for what was preferred to 0 for what was merely put up with."""
        return self.stated.ladder.score(self.rung)


class Quality(NamedTuple):
    """How good an allocation is, by the rules of `objective`; lower is better. Comparable between nodes for the same claims."""

    alternatives: tuple[int, ...]  # for each `firstAvailable` request, which one is served
    cost: Cost

    @property
    def for_the_pod(self) -> tuple[object, ...]:
        """What matters to the pod itself: rules 1 to 5."""
        return self.alternatives, self.cost[:_RULES_FOR_OTHERS]

    @property
    def for_others(self) -> tuple[object, ...]:
        """What matters to those that want devices afterwards: rules 6 to 8."""
        return self.cost[_RULES_FOR_OTHERS:]


_RULES_FOR_OTHERS: Final = Cost._fields.index("spoiled")
_MOST_ALTERNATIVES: Final = 8
"""The API's limit on `firstAvailable`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An allocation for every claim, in the order asked.

    `basis` says when the pools it takes from were looked at, by the ledger's clock. The cost is worked out when first
    asked for, whatever policy found the allocation.
    """

    claims: tuple[ClaimPlan, ...]
    basis: Mapping[PoolId, int]
    steps: int
    alternatives: tuple[int, ...]  # for each `firstAvailable` request, which one is served
    _cost: Callable[[], Cost] = field(repr=False, compare=False)
    _repeat: Callable[[NodeView, Question], Plan | None] = field(repr=False, compare=False)
    warnings: tuple[SelectorWarning, ...] = ()
    aligned: tuple[AlignedRequests, ...] = ()
    """The alignments that were stated."""

    @property
    def levels(self) -> tuple[ReachedLevel, ...]:
        """The level that each stated alignment reaches."""
        if not self.aligned:
            return ()
        found = zip(self.aligned, self._cost().rungs, strict=True)
        return tuple(ReachedLevel(stated, reached) for stated, reached in found)

    @property
    def quality(self) -> Quality:
        """How good it is: the objective of policy `best`, except for the order of equals."""
        return Quality(self.alternatives, self._cost())

    def on(self, view: NodeView, question: Question) -> Plan | None:
        """What a search would find on another node, if that is known without one.

        That is so if the question is the same and the devices that matter, which both nodes see, are the same and in the same state.
        """
        return self._repeat(view, question)

    def part(self, first: int, last: int) -> Plan:
        """What it gives to some of its claims. The caller vouches that the rest of it, and nothing else, is taken at the same moment."""
        return replace(self, claims=self.claims[first:last], basis={})

    @property
    def preference_score(self) -> int:
        """How early the served alternatives are, as kube-scheduler counts it: higher is better, exact requests do not count."""
        return sum(_MOST_ALTERNATIVES - index for index in self.alternatives)


class Diagnosis(Struct, frozen=True):
    kind: Finality
    rejections: tuple[Rejection, ...]


class Refusal:
    """The claims cannot be served on this node; the rejections say why, request by request.

    The diagnosis is worked out when first asked for: a scheduler that tries a thousand nodes needs few of them.
    """

    __slots__ = ("_diagnose", "_diagnosis", "steps", "warnings")

    def __init__(
        self,
        diagnose: Callable[[], Diagnosis],
        steps: int,
        warnings: tuple[SelectorWarning, ...] = (),
    ) -> None:
        self._diagnose = diagnose
        self._diagnosis: Diagnosis | None = None
        self.steps = steps
        self.warnings = warnings

    @property
    def diagnosis(self) -> Diagnosis:
        if self._diagnosis is None:
            self._diagnosis = self._diagnose()
        return self._diagnosis

    @property
    def kind(self) -> Finality:
        return self.diagnosis.kind

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        return self.diagnosis.rejections

    def __repr__(self) -> str:
        return (
            f"Refusal(kind={self.kind.value!r}, rejections={self.rejections!r}, steps={self.steps})"
        )


class Scope(Enum):
    FATAL = "fatal"  # the claim itself is at fault, or cannot be judged: no node can serve it
    NODE = "node"  # something is wrong on this node only


class Defect(Enum):
    """What is wrong where a question cannot be answered."""

    CLAIM = "claim"  # the claim does not make sense
    TOO_MANY = "too many"  # it wants more devices than a claim may have
    CLASS = "class"  # a device class does not exist
    SELECTOR = "selector"  # a selector cannot be evaluated
    CONSTRAINT = "constraint"  # one of all the devices breaks a constraint
    FEATURE = "feature"  # it asks for something that is switched off
    POOL = "pool"  # the slices of a pool are missing or contradict each other


@dataclass(frozen=True, slots=True)
class Fault:
    """The question cannot be answered: a broken selector, an unknown class, an invalid pool."""

    message: str
    scope: Scope
    steps: int = 0
    claim: str = ""
    request: str = ""
    devices: tuple[DeviceId, ...] = field(default=())
    defect: Defect = Defect.CLAIM
    why: str = ""
    """The message without what it is about, where that is known."""
    refusal: Refusal | None = None
    """What the answer would be without the fault."""


class Exhausted(Struct, frozen=True):
    """The step limit was reached before an answer was found. Not a refusal: there may well be a solution."""

    steps: int


Outcome: TypeAlias = Plan | Refusal | Fault | Exhausted
