"""Everything that can be seen of a view and of a ledger, in a form that compares equal when they are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drayman.allocator import Plan, Refusal, search
from drayman.api.codec import to_dict
from drayman.api.resource import ResourceClaim
from drayman.inventory import Ledger, NodeView
from oracle.subject import BEST, FIRST_FIT


def seen_in(ledger: Ledger) -> Any:
    """Holders with their holdings, and the same by pool."""
    holders = {
        holder: sorted((h.device, h.share_id or "", sorted(h.consumed.items())) for h in held)
        for holder, held in ledger.holders()
    }
    pools = {holding.device.pool_id for _, held in ledger.holders() for holding in held}
    by_pool = {
        pool: {
            device: sorted(str(h.share_id) for h in held.values())
            for device, held in ledger.held_in(pool).items()
        }
        for pool in pools
    }
    return holders, by_pool


def observed(view: NodeView, claims: Sequence[ResourceClaim]) -> Any:
    """Devices, problems, what is in use, what is left, and the answers to some claims."""
    hardware = view.hardware
    counters = {
        (info.pool, info.name): dict(zip(info.names, left, strict=True))
        for info, left in zip(hardware.counter_sets, view.usage.counters, strict=True)
    }
    remaining = [
        dict(zip((c.name for c in record.capacities), view.usage.remaining(position), strict=True))
        for position, record in enumerate(hardware.records)
    ]
    return {
        "devices": [record.id for record in hardware.records],
        "problems": sorted((pool.id, pool.state.value) for pool in view.problems),
        "in use": view.ids_of(view.usage.in_use),
        "shared": view.ids_of(view.usage.shared),
        "paid": view.ids_of(view.usage.paid),
        "blocked": view.ids_of(view.usage.overcommitted),
        "counters": counters,
        "remaining": remaining,
        "answers": [_answer(view, claims, policy) for policy in (FIRST_FIT, BEST)],
    }


def _answer(view: NodeView, claims: Sequence[ResourceClaim], policy: Any) -> Any:
    outcome = search(view, claims, policy=policy)
    if isinstance(outcome, Plan):
        return [to_dict(item.allocation) for item in outcome.claims]
    if isinstance(outcome, Refusal):
        return outcome.kind, outcome.rejections
    return repr(outcome)
