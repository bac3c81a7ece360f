"""The allocator: from claims and a node's devices to a plan, or to the reason why there is none.

It reads and never writes: `Ledger.commit` does that, with the plan. The same question always has the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from msgspec.structs import replace

from drayman.allocator.assembly import AmbiguousNodeSelectorError, assemble
from drayman.allocator.policies.aligning import Aligner
from drayman.allocator.policies.best import Best
from drayman.allocator.policies.firstfit import FirstFit
from drayman.allocator.policies.objective import broken_in, cost_of
from drayman.allocator.problem.focus import focused
from drayman.allocator.problem.limits import DEFAULT_MAX_STEPS
from drayman.allocator.problem.outcome import (
    Cost,
    Defect,
    Exhausted,
    Fault,
    Outcome,
    Plan,
    Refusal,
    Scope,
    SelectorWarning,
)
from drayman.allocator.problem.prepare import Judgement, prepare
from drayman.allocator.problem.question import Question
from drayman.allocator.problem.reduction import reduced
from drayman.allocator.problem.tables import Alternative, PreparationError, Tables, claim_name
from drayman.allocator.refusals.diagnosis import diagnose
from drayman.allocator.tree.engine import ErrorFound, OutOfSteps
from drayman.api.resource import ResourceClaim
from drayman.inventory.bitsets import positions
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.view import NodeView


class Policy(Enum):
    FIRST_FIT = "first-fit"  # upstream's order and answers
    BEST = "best"  # the user's order, then alignment, then least fragmentation


def search(
    view: NodeView,
    claims: Sequence[ResourceClaim] | Question,
    *,
    policy: Policy = Policy.BEST,
    max_steps: int | None = None,
) -> Outcome:
    """Allocate the claims together on the node of the view."""
    limit = DEFAULT_MAX_STEPS if max_steps is None else max_steps
    question = claims if isinstance(claims, Question) else Question(claims)
    answer = _best if policy is Policy.BEST else _first_fit
    return answer(focused(view, question), question, limit)


def _first_fit(view: NodeView, question: Question, max_steps: int) -> Outcome:
    try:
        tables = prepare(view, question, Judgement.STRICT)
    except PreparationError as error:
        return _preparation_fault(view, error)
    run = FirstFit(reduced(tables), max_steps, strict=True)
    try:
        placements = run.run()
    except ErrorFound as error:
        return _search_fault(tables, error, run.steps)
    except OutOfSteps:
        return Exhausted(run.steps)
    if placements is None:
        return _refuse(tables, run.steps)
    steps = run.steps
    if tables.alignment:
        aligner = Aligner(reduced(tables), max_steps - steps, in_order=True)
        try:
            placements = aligner.run(placements)
        except OutOfSteps:
            return Exhausted(steps + aligner.steps)
        steps += aligner.steps
        if placements is None:
            return _refuse(tables, steps, is_misaligned=True)
    return _plan(tables, placements, steps, None, repeats_config=True)


def _best(view: NodeView, question: Question, max_steps: int) -> Outcome:
    """One broken device must not stop a cluster: where a selector fails the device is passed over, and reported."""
    try:
        tables = prepare(view, question, Judgement.LENIENT)
    except PreparationError as error:
        return _preparation_fault(view, error)
    run = Best(reduced(tables), max_steps)
    try:
        placements = run.run()
        is_refused = placements is None and not run.is_misaligned
        if is_refused and _could_have_mattered(tables, max_steps - run.steps):
            return _selector_fault(tables, run.steps)
    except OutOfSteps:
        return Exhausted(run.steps)
    if placements is None:
        return _refuse(tables, run.steps, _warnings(tables), is_misaligned=run.is_misaligned)
    return _plan(tables, placements, run.steps, run.cost, _warnings(tables))


def _unjudged(tables: Tables) -> Iterator[tuple[Alternative, int]]:
    for request in tables.requests:
        for alternative in request.alternatives:
            for position in positions(alternative.unjudged):
                yield alternative, position


def _warnings(tables: Tables) -> tuple[SelectorWarning, ...]:
    return tuple(
        SelectorWarning(
            tables.view.id_of(position),
            alternative.name,
            tables.view.hardware.failure(alternative.selectors, position),
        )
        for alternative, position in _unjudged(tables)
    )


def _could_have_mattered(tables: Tables, max_steps: int) -> bool:
    """Whether the claims could be served if every selector that failed had said yes. Raises OutOfSteps."""
    if not any(_unjudged(tables)):
        return False
    hopeful = prepare(tables.view, tables.question, Judgement.HOPEFUL)
    return FirstFit(reduced(hopeful), max_steps, strict=False).run() is not None


def _selector_fault(tables: Tables, steps: int) -> Fault:
    alternative, position = next(_unjudged(tables))
    devices = dict.fromkeys(tables.view.id_of(found) for _, found in _unjudged(tables))
    return _selector_failure(tables, alternative, position, steps, tuple(devices))


def _selector_failure(
    tables: Tables,
    alternative: Alternative,
    position: int,
    steps: int,
    devices: tuple[DeviceId, ...],
) -> Fault:
    claim = claim_name(tables.claims[alternative.claim])
    why = tables.view.hardware.failure(alternative.selectors, position)
    others = f" (and {len(devices) - 1} more devices)" if len(devices) > 1 else ""
    text = f"claim {claim}, request {alternative.name}: device {devices[0]}{others}: {why}"
    return Fault(text, Scope.FATAL, steps, claim, alternative.name, devices, Defect.SELECTOR, why)


def _refuse(
    tables: Tables,
    steps: int,
    warnings: tuple[SelectorWarning, ...] = (),
    *,
    is_misaligned: bool = False,
) -> Refusal | Fault:
    """No allocation: the node's own fault if one of its pools cannot be used, else a refusal."""
    refusal = Refusal(lambda: diagnose(tables, is_misaligned=is_misaligned), steps, warnings)
    if tables.view.invalid_pools:
        pools = ", ".join(f"{pool.id}: {pool.reason}" for pool in tables.view.invalid_pools)
        text = f"invalid resource pools: {pools}"
        return Fault(text, Scope.NODE, steps, defect=Defect.POOL, refusal=refusal)
    return refusal


def _preparation_fault(view: NodeView, error: PreparationError) -> Fault:
    return Fault(
        str(error),
        Scope.FATAL,
        claim=claim_name(error.claim),
        request=error.request,
        devices=view.ids_of(error.devices),
        defect=error.defect,
        why=error.why,
    )


def _search_fault(tables: Tables, error: ErrorFound, steps: int) -> Fault:
    alternative = error.alternative
    device = tables.view.id_of(error.position)
    if not error.constraint:
        return _selector_failure(tables, alternative, error.position, steps, (device,))
    claim = claim_name(tables.claims[alternative.claim])
    why = "is one of all the devices asked for, but breaks a constraint of the claim"
    text = f"claim {claim}, request {alternative.name}: device {device} {why}"
    return Fault(
        text, Scope.FATAL, steps, claim, alternative.name, (device,), Defect.CONSTRAINT, why
    )


def _plan(
    tables: Tables,
    placements: Sequence[tuple[Alternative, int]],
    steps: int,
    cost: Cost | None,
    warnings: tuple[SelectorWarning, ...] = (),
    *,
    repeats_config: bool = False,
) -> Plan | Fault:
    try:
        claims = assemble(tables, placements, repeats_config=repeats_config)
    except AmbiguousNodeSelectorError as error:
        return Fault(str(error), Scope.FATAL, steps)
    served = {alternative.request: alternative.index for alternative, _ in placements}
    alternatives = tuple([served[i] for i, r in enumerate(tables.requests) if r.listed])
    known: Cost | None = None

    def assess() -> Cost:
        nonlocal known
        if known is None:
            known = _cost_for_node(tables, cost or cost_of(tables, placements))
        return known

    def repeat(view: NodeView, question: Question) -> Plan | None:
        shown = focused(view, question)
        if not _is_same_problem(tables, shown, question):
            return None
        found = _plan(
            replace(tables, view=shown),
            placements,
            steps,
            cost,
            warnings,
            repeats_config=repeats_config,
        )
        return found if isinstance(found, Plan) else None

    return Plan(
        claims,
        _basis(tables, placements),
        steps,
        alternatives,
        assess,
        repeat,
        warnings,
        tables.alignment,
    )


def _is_same_problem(tables: Tables, view: NodeView, question: Question) -> bool:
    """Whether the question, put to the node of the view, results in these tables."""
    return (
        view.state == tables.view.state
        and question.requests is tables.question.requests
        and question.claims == tables.question.claims
        and all(
            view.device_class(alternative.spec.device_class_name) is alternative.device_class
            for request in tables.requests
            for alternative in request.alternatives
        )
    )


def _cost_for_node(tables: Tables, cost: Cost) -> Cost:
    """The cost of a plan, including what the devices left out add to it."""
    for usage in tables.view.left_out:
        fabrics, numa_nodes, roots = broken_in(usage)
        cost = cost._replace(
            broken_fabrics=cost.broken_fabrics + fabrics,
            broken_numa_nodes=cost.broken_numa_nodes + numa_nodes,
            broken_roots=cost.broken_roots + roots,
        )
    return cost


def _basis(tables: Tables, placements: Sequence[tuple[Alternative, int]]) -> Mapping[PoolId, int]:
    view = tables.view
    pools = {view.id_of(position).pool_id for _, position in placements}
    return dict.fromkeys(sorted(pools), view.time)
