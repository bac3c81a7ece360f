"""In which order nodes are tried: those that came closest to taking the pod first, and one of each kind before a second of any."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from drayman.placement.fit import Verdict
from drayman.placement.nodes import NodeState
from drayman.placement.state import ClusterState


def nearest_first(
    state: ClusterState, verdicts: Mapping[str, Verdict], only: str | None = None
) -> list[NodeState]:
    """All nodes, or the only candidate."""
    if only is not None:
        return [state.nodes[only]] if only in state.nodes else []
    kinds: dict[Hashable, list[NodeState]] = {}
    for name, node in state.nodes.items():
        verdict = verdicts.get(name)
        kinds.setdefault((id(verdict), id(node.facts.shape)), []).append(node)
    ordered = sorted(kinds.values(), key=lambda nodes: _distance(state, verdicts, nodes))
    turns = [(turn, node) for nodes in ordered for turn, node in enumerate(nodes)]
    return [node for _, node in sorted(turns, key=lambda pair: pair[0])]


def free_devices(state: ClusterState, node: NodeState) -> int:
    """How many devices of a node are entirely free."""
    view = state.inventory.view(node.node, state.ledger)
    return len(view.hardware.records) - (view.usage.in_use | view.usage.shared).bit_count()


def _distance(
    state: ClusterState, verdicts: Mapping[str, Verdict], nodes: list[NodeState]
) -> tuple[bool, int, int, int]:
    verdict = verdicts.get(nodes[0].facts.name)
    is_resolvable = verdict is not None and verdict.resolvable
    return not is_resolvable, -free_devices(state, nodes[0]), -len(nodes), nodes[0].index
