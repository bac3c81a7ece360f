"""Claims that hold more of a device, or of what devices share, than there is; and which of them has to give way.

Two schedulers can give the same device to two claims where the server lets them. Those whose pods have no node yet can still be taken back.
Everyone who follows the claims sees their versions in the same order, so all agree about which claim was first: it keeps what it has, and
so does a claim that a pod on a node uses. A claim gives way if what it holds does not fit together with what those before it hold.

The place of a claim that had its devices when it was first seen is not known: if it is ours it is the last, and otherwise the first. So two
claims never both keep a device; both may give way if a scheduler was started just then.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from msgspec import Struct

from drayman.api.resource import ResourceClaim
from drayman.inventory.identity import PoolId
from drayman.inventory.ledger import Held, Holding, holder_of
from drayman.inventory.limits import Excess
from drayman.placement.state import ClusterState, is_promise

InUse = Callable[[ResourceClaim], bool]
"""Whether a pod on a node uses a claim."""


class Clash(Struct, frozen=True):
    """Something of which several holders have too much."""

    what: str
    """As in `device driver/pool/gpu-0`."""
    others: tuple[str, ...]
    """The holders besides the one that was asked about."""


def clash(
    state: ClusterState, claim: ResourceClaim, among: Container[str] | None = None
) -> Clash | None:
    """The first thing of which a claim and others, or only these others, hold too much.

    Not one of which the claim alone has too much: its pool has shrunk, and no other is to blame.
    """
    own = holder_of(claim)
    pools = dict.fromkeys(holding.device.pool_id for holding in state.ledger.holdings(own))
    for pool in pools:
        in_pool = state.ledger.held_in(pool)
        shared = [held for held in in_pool.values() if len(held) > 1 and _holds(held, own)]
        if not shared and not state.inventory.has_counters(pool):
            continue  # nearly always
        limits = state.inventory.limits(pool)
        held = {device.device: _among(found, own, among) for device, found in in_pool.items()}
        for excess in limits.excesses(own, held):
            if excess.others:
                return Clash(_named(pool, excess), excess.others)
    return None


def gives_way(state: ClusterState, claim: ResourceClaim, in_use: InUse) -> Clash | None:
    """What a claim has to give back its devices for; None if it may keep them."""
    found = clash(state, claim)
    if found is None or in_use(claim):
        return None
    own = state.allocated_at(claim)
    before = {users.claim.holder for users in state.lost_claims()}
    for other in state.allocated_claims():
        at = state.allocated_at(other)
        if own is None or at is None or at < own or in_use(other):
            before.add(holder_of(other))
    return clash(state, claim, before)


def _among(held: Held, own: str, among: Container[str] | None) -> dict[str, list[Holding]]:
    """What the claim and these others hold, by holder."""
    found: dict[str, list[Holding]] = {}
    for (holder, _), holding in held.items():
        if holder == own or (holder in among if among is not None else not is_promise(holder)):
            found.setdefault(holder, []).append(holding)
    return found


def _holds(held: Held, own: str) -> bool:
    return any(holder == own for holder, _ in held)


def _named(pool: PoolId, excess: Excess[str]) -> str:
    if excess.counter is not None:
        return f"counter {excess.counter[1]} of {excess.counter[0]} in pool {pool}"
    of = f"{excess.capacity} of device" if excess.capacity else "device"
    return f"{of} {pool}/{excess.device}"
