"""The search for devices: from claims and a node's view to a plan or a refusal. Pure and read-only."""

from drayman.allocator.outcome import (
    ClaimPlan,
    Diagnosis,
    Exhausted,
    Fault,
    Kind,
    Outcome,
    Plan,
    Reason,
    Refusal,
    Rejection,
    Scope,
    SelectorWarning,
)
from drayman.allocator.search import Policy, search

__all__ = [
    "ClaimPlan",
    "Diagnosis",
    "Exhausted",
    "Fault",
    "Kind",
    "Outcome",
    "Plan",
    "Policy",
    "Reason",
    "Refusal",
    "Rejection",
    "Scope",
    "SelectorWarning",
    "search",
]
