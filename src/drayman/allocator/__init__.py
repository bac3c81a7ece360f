"""The search for devices: from claims and a node's view to a plan or a refusal. Pure and read-only."""

from drayman.allocator.problem.outcome import (
    ClaimPlan,
    Cost,
    Defect,
    Diagnosis,
    Exhausted,
    Fault,
    Finality,
    Outcome,
    Plan,
    Quality,
    Refusal,
    Rejection,
    RejectionReason,
    Scope,
    SelectorWarning,
)
from drayman.allocator.problem.question import Question
from drayman.allocator.search import Policy, search
from drayman.allocator.signature import signature

__all__ = [
    "ClaimPlan",
    "Cost",
    "Defect",
    "Diagnosis",
    "Exhausted",
    "Fault",
    "Finality",
    "Outcome",
    "Plan",
    "Policy",
    "Quality",
    "Question",
    "Refusal",
    "Rejection",
    "RejectionReason",
    "Scope",
    "SelectorWarning",
    "search",
    "signature",
]
