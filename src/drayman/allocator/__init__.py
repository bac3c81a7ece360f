"""The search for devices: from claims and a node's view to a plan or a refusal. Pure and read-only."""

from drayman.allocator.copies import Together, together
from drayman.allocator.problem.outcome import (
    ClaimPlan,
    Defect,
    Exhausted,
    Fault,
    Finality,
    Outcome,
    Plan,
    Quality,
    ReachedLevel,
    Refusal,
    Rejection,
    RejectionReason,
    Scope,
)
from drayman.allocator.problem.question import Question
from drayman.allocator.problem.stated import HeldDevice, PodAlignment
from drayman.allocator.search import Policy, search
from drayman.allocator.signature import signature

__all__ = [
    "ClaimPlan",
    "Defect",
    "Exhausted",
    "Fault",
    "Finality",
    "HeldDevice",
    "Outcome",
    "Plan",
    "PodAlignment",
    "Policy",
    "Quality",
    "Question",
    "ReachedLevel",
    "Refusal",
    "Rejection",
    "RejectionReason",
    "Scope",
    "Together",
    "search",
    "signature",
    "together",
]
