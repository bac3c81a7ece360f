"""The search for devices: from claims and a node's view to a plan or a refusal. Pure and read-only."""

from drayman.allocator.problem.outcome import (
    ClaimPlan,
    Cost,
    Defect,
    Diagnosis,
    Exhausted,
    Fault,
    Kind,
    Outcome,
    Plan,
    Quality,
    Reason,
    Refusal,
    Rejection,
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
    "Kind",
    "Outcome",
    "Plan",
    "Policy",
    "Quality",
    "Question",
    "Reason",
    "Refusal",
    "Rejection",
    "Scope",
    "SelectorWarning",
    "search",
    "signature",
]
