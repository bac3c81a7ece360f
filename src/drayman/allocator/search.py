"""The allocator: from claims and a node's devices to a plan, or to the reason why there is none.

It reads and never writes: `Ledger.commit` does that, with the plan. The same question always has the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from drayman.allocator.assembly import AmbiguousNodeSelectorError, assemble
from drayman.allocator.diagnosis import diagnose
from drayman.allocator.engine import ErrorFound, OutOfSteps
from drayman.allocator.firstfit import FirstFit
from drayman.allocator.limits import DEFAULT_MAX_STEPS
from drayman.allocator.outcome import Exhausted, Fault, Outcome, Plan, Refusal, Scope
from drayman.allocator.prepare import prepare
from drayman.allocator.tables import Alternative, PreparationError, Tables, claim_name
from drayman.api.resource import ResourceClaim
from drayman.inventory.identity import PoolId
from drayman.inventory.view import NodeView


class Policy(Enum):
    FIRST_FIT = "first-fit"  # upstream's order and answers
    BEST = "best"  # the user's order, then alignment, then least fragmentation


def search(
    view: NodeView,
    claims: Sequence[ResourceClaim],
    *,
    policy: Policy = Policy.BEST,
    max_steps: int | None = None,
) -> Outcome:
    """Allocate the claims together on the node of the view."""
    limit = DEFAULT_MAX_STEPS if max_steps is None else max_steps
    return _first_fit(view, claims, limit)


def _first_fit(view: NodeView, claims: Sequence[ResourceClaim], max_steps: int) -> Outcome:
    try:
        tables = prepare(view, claims, strict=True)
    except PreparationError as error:
        return _preparation_fault(view, error)
    run = FirstFit(tables, max_steps, strict=True)
    try:
        placements = run.run()
    except ErrorFound as error:
        return _search_fault(tables, error, run.steps)
    except OutOfSteps:
        return Exhausted(run.steps)
    if placements is None:
        return refuse(tables, run.steps)
    return plan(tables, placements, run.steps)


def refuse(tables: Tables, steps: int) -> Refusal | Fault:
    """No allocation: the node's own fault if one of its pools cannot be used, else a refusal."""
    if tables.view.invalid_pools:
        pools = ", ".join(f"{pool.id}: {pool.reason}" for pool in tables.view.invalid_pools)
        return Fault(f"invalid resource pools: {pools}", Scope.NODE, steps)
    return Refusal(lambda: diagnose(tables), steps)


def _preparation_fault(view: NodeView, error: PreparationError) -> Fault:
    return Fault(
        str(error),
        Scope.FATAL,
        claim=claim_name(error.claim),
        request=error.request,
        devices=view.ids_of(error.devices),
    )


def _search_fault(tables: Tables, error: ErrorFound, steps: int) -> Fault:
    alternative, view = error.alternative, tables.view
    claim = claim_name(tables.claims[alternative.claim])
    device = view.id_of(error.position)
    if error.constraint:
        why = "is one of all the devices asked for, but breaks a constraint of the claim"
    else:
        why = view.hardware.failure(alternative.selectors, error.position)
    text = f"claim {claim}, request {alternative.name}: device {device}: {why}"
    return Fault(text, Scope.FATAL, steps, claim, alternative.name, (device,))


def plan(
    tables: Tables, placements: Sequence[tuple[Alternative, int]], steps: int
) -> Plan | Fault:
    try:
        claims = assemble(tables, placements)
    except AmbiguousNodeSelectorError as error:
        return Fault(str(error), Scope.FATAL, steps)
    return Plan(claims, _basis(tables, placements), steps)


def _basis(tables: Tables, placements: Sequence[tuple[Alternative, int]]) -> Mapping[PoolId, int]:
    view = tables.view
    pools = {view.id_of(position).pool_id for _, position in placements}
    return {pool_id: view.revisions[pool_id] for pool_id in sorted(pools)}
