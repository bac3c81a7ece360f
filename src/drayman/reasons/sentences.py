"""The sentence after the reason: which claim and request, which nodes, how many, and why.

Copies of a pod share a sentence, so claims are named by markers (`placement.refusing.name_claims`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.placement.demand import Demand
from drayman.placement.state import ClusterState
from drayman.reasons.device_sentences import DEVICE_WRITERS
from drayman.reasons.finding import Finding
from drayman.reasons.node_sentences import NODE_WRITERS
from drayman.reasons.planned import Planned
from drayman.reasons.reason import Reason
from drayman.reasons.subjects import FindingContext, Writer

_WRITERS: Final[Mapping[Reason, Writer]] = {**NODE_WRITERS, **DEVICE_WRITERS}


def sentence(
    state: ClusterState, demand: Demand, found: Finding, planned: Planned | None = None
) -> str:
    """What is said about a finding."""
    return _WRITERS[found.reason](FindingContext(state, demand, found, planned))
