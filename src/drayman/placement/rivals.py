"""Claims that hold more of a device, or of what devices share, than there is; and which of them yields.

Two schedulers can give the same device to two claims where the server lets them. A claim whose pods have no node yet can still be
deallocated. All schedulers that follow the claims see their versions in the same order, so they agree about which claim was first: it keeps
what it has, and so does a claim that a pod on a node uses. A claim yields if its holdings do not fit together with those of the claims
before it.

The position of a claim that had its devices when it was first seen is not known: a claim of this scheduler counts as the last, any other as
the first. So two claims never both keep a device; both may yield if a scheduler was started just then.

A yielding claim is not deallocated while another claim holds one of its devices (`held_twice`): kube-scheduler keeps allocated devices in a
set, removes a device when any claim that holds it is deallocated, and would give the device to a third claim. For the same reason a claim
whose device another claim has released (`ClaimBook.forgotten_of`) is allocated again before a pod starts with it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from msgspec import Struct

from drayman.api.resource import ResourceClaim
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.ledger import Held, Holding, holder_of, whole_devices
from drayman.inventory.limits import Excess
from drayman.placement.state import ClusterState, is_promise

InUse = Callable[[ResourceClaim], bool]
"""Whether a pod on a node uses a claim."""


class Clash(Struct, frozen=True):
    """Something of which several holders have too much."""

    what: str
    """As in `device driver/pool/gpu-0`."""
    others: tuple[str, ...]
    """The other holders."""


def held_twice(state: ClusterState, claim: ResourceClaim) -> tuple[DeviceId, ...]:
    """The devices that a claim and another claim have as a whole, as the server shows them."""
    return tuple(
        device
        for device in sorted(whole_devices(claim))
        if len(state.ledger.holders_of(device)) > 1 and len(state.claims_with(device)) > 1
    )


def contested(state: ClusterState, claim: ResourceClaim) -> str:
    """Why no pod may start with the devices of a claim, in words; empty if one may. Pods that run with them keep them."""

    def in_use(each: ResourceClaim) -> bool:
        return bool(state.users_of(each))

    if claim.status.allocation is None or in_use(claim):
        return ""
    forgotten = sorted(state.forgotten_of(claim))
    twice = held_twice(state, claim)
    if not forgotten and not twice:
        return ""  # nearly always
    found = yields(state, claim, in_use) if twice else None
    if found is not None:
        named = ", ".join(named_holders(state, found.others))
        return f"{found.what} is held by {named} too, which was first"
    if forgotten:
        return f"device {forgotten[0]} was held by another claim too; it is allocated again"
    return ""


def named_holders(state: ClusterState, holders: Iterable[str]) -> list[str]:
    """Holders of devices as messages name them."""
    wanted = set(holders)
    named = [
        f"claim {claim.metadata.namespace}/{claim.metadata.name}"
        for claim in state.allocated_claims()
        if holder_of(claim) in wanted
    ]
    lost = [users.claim for h in wanted if (users := state.lost_claim(h)) is not None]
    named += [f"a pod whose claim {c.namespace}/{c.name} was {c.how}" for c in lost]
    return sorted(named) or ["another decision"]


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


def yields(state: ClusterState, claim: ResourceClaim, in_use: InUse) -> Clash | None:
    """The conflict for which a claim must release its devices; None if it keeps them."""
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
