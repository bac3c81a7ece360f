"""Why the claims cannot be served: for every request what drops out at each test, and how final it is.

Nothing is guessed. The funnel is computed from the sets that the search itself used, and *never* is said only after a search of the same
node with nothing in use has failed as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec.structs import replace

from drayman.allocator.policies.aligning import Aligner
from drayman.allocator.policies.firstfit import FirstFit
from drayman.allocator.problem.limits import DEFAULT_MAX_STEPS, MAX_ENTRIES
from drayman.allocator.problem.outcome import Diagnosis, Finality, Rejection, RejectionReason
from drayman.allocator.problem.prepare import Judgement, prepare
from drayman.allocator.problem.reduction import reduced
from drayman.allocator.problem.tables import Alternative, Tables, claim_name
from drayman.allocator.tree.engine import OutOfSteps
from drayman.allocator.tree.state import Transitions
from drayman.inventory.bitsets import positions
from drayman.inventory.identity import DeviceId, PoolId
from drayman.inventory.view import NodeView


def diagnose(tables: Tables, *, is_misaligned: bool = False) -> Diagnosis:
    """The reasons behind a refusal. `is_misaligned`: only an alignment that is required is in the way."""
    funnels = _Funnels(tables)
    rejections = funnels.misaligned() if is_misaligned else funnels.all()
    return Diagnosis(_kind(tables, funnels.used_up), tuple(rejections))


def _kind(tables: Tables, used_up: int) -> Finality:
    emptied = prepare(tables.view.emptied(), tables.question, Judgement.LENIENT)
    try:
        fits_when_empty = _fits(reduced(emptied))
    except OutOfSteps:
        return Finality.NOT_HERE  # it could not be shown that nothing helps
    if not fits_when_empty:
        return Finality.NEVER
    each_alone = all(
        any(
            _is_enough(alternative, alternative.candidates & ~used_up)
            for alternative in r.alternatives
        )
        for r in tables.requests
    )
    return Finality.NOT_HERE if each_alone else Finality.NOT_NOW


def _fits(tables: Tables) -> bool:
    """Raises OutOfSteps."""
    found = FirstFit(tables, DEFAULT_MAX_STEPS, strict=False).run()
    if found is None or not tables.alignment:
        return found is not None
    return Aligner(tables, DEFAULT_MAX_STEPS, in_order=False).run(found) is not None


def _is_enough(alternative: Alternative, free: int) -> bool:
    """Whether these devices are as many as wanted; for all devices, whether they are all."""
    if free.bit_count() < max(alternative.number, 1):
        return False
    return alternative.sequence is None or all(free >> i & 1 for i in alternative.sequence)


class _Funnels:
    """What drops out where, request by request."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._view = tables.view
        self._hardware = tables.view.hardware
        self._left_out = _LeftOut(tables.view)
        blocked = Transitions(tables, admin_blocks=False).initial().counter_blocked
        self.used_up = tables.view.usage.overcommitted | blocked & ~tables.view.usage.paid
        """Devices for which too little is left of what they are parts of."""

    def all(self) -> Iterator[Rejection]:
        lacking = False
        for request in self._tables.requests:
            for alternative in request.alternatives:
                for rejection in self._funnel(alternative):
                    lacking |= rejection.reason in (
                        RejectionReason.COUNT,
                        RejectionReason.CONSTRAINT,
                    )
                    yield rejection
        if not lacking:
            yield from self._combination()

    def _funnel(self, alternative: Alternative) -> Iterator[Rejection]:
        remaining = self._hardware.everything
        wanted = alternative.number or 1
        if not remaining:
            yield self._rejection(alternative, RejectionReason.NO_DEVICES, 0, 0)
        for number, (reason, passing, detail) in enumerate(self._tests(alternative)):
            rejected = remaining & ~passing
            remaining &= passing
            others, others_left = self._left_out.dropped(alternative.selectors, number)
            if rejected or others:
                found = self._rejection(alternative, reason, rejected, remaining, detail)
                yield self._left_out.added_to(found, others, others_left)
        if alternative.number > MAX_ENTRIES:
            yield self._rejection(alternative, RejectionReason.TOO_MANY, remaining, remaining)
        if remaining.bit_count() < wanted:
            yield self._rejection(alternative, RejectionReason.COUNT, remaining, remaining)
            return
        for index in alternative.matches:
            constraint = self._tables.matches[index]
            best = max(
                ((holder & remaining).bit_count() for holder in constraint.attribute.holders),
                default=0,
            )
            if best < alternative.number:
                how_many = "no two" if best == 1 else f"at most {best}"
                detail = f"{how_many} agree in {constraint.name}"
                yield self._rejection(
                    alternative, RejectionReason.CONSTRAINT, remaining, remaining, detail
                )
        for index in alternative.distincts:
            constraint = self._tables.distincts[index]
            values = sum(1 for holder in constraint.attribute.holders if holder & remaining)
            if values < alternative.number:
                detail = f"only {values} different values of {constraint.name}"
                yield self._rejection(
                    alternative, RejectionReason.CONSTRAINT, remaining, remaining, detail
                )

    def _tests(self, alternative: Alternative) -> Iterator[tuple[RejectionReason, int, str]]:
        """The tests in order, each with the devices that pass it."""
        hardware, view = self._hardware, self._view
        class_selectors = len(alternative.device_class.spec.selectors)
        passed, failed = hardware.everything, 0
        for index, expression in enumerate(alternative.selectors):
            accepted, broken = hardware.select((expression,))
            failed |= passed & broken
            passed &= accepted
            of_class = index < class_selectors
            reason = (
                RejectionReason.CLASS_SELECTOR if of_class else RejectionReason.REQUEST_SELECTOR
            )
            yield reason, passed | failed, expression
        yield RejectionReason.SELECTOR_FAILED, ~failed, ""
        yield RejectionReason.NODE_SELECTION, hardware.selects_node, ""
        if not view.features.binding_conditions:
            yield RejectionReason.BINDING_CONDITIONS, ~hardware.binding, ""
        if not alternative.admin:
            yield RejectionReason.IN_USE, ~view.usage.in_use, ""
        yield RejectionReason.TAINTED, view.tolerated(alternative.spec.tolerations), ""
        yield RejectionReason.CAPACITY, ~self._tables.capacity_blocked[alternative.charge], ""
        yield RejectionReason.COUNTERS, ~self.used_up, ""
        if not view.features.partitionable_devices:
            yield RejectionReason.COUNTERS, ~hardware.consumers, "partitionable devices are off"
        for index in alternative.matches:
            constraint = self._tables.matches[index]
            yield RejectionReason.NO_ATTRIBUTE, constraint.attribute.present, constraint.name
        for index in alternative.distincts:
            constraint = self._tables.distincts[index]
            yield RejectionReason.NO_ATTRIBUTE, constraint.attribute.present, constraint.name

    def misaligned(self) -> Iterator[Rejection]:
        """All requests could be served, but not from where those of a group have to be."""
        required = [group for group in self._tables.alignment if group.ladder.is_required]
        for request in self._tables.requests:
            for alternative in request.alternatives:
                yield from self._funnel(alternative)
                groups = [g for g in required if g.includes(alternative.claim, alternative.name)]
                if groups:
                    last = " or ".join(dict.fromkeys(str(g.ladder.rungs[-1]) for g in groups))
                    detail = f"no choice of them is aligned at {last}, as is required"
                    reason, devices = RejectionReason.CONSTRAINT, alternative.candidates
                    yield self._rejection(alternative, reason, devices, devices, detail)

    def _combination(self) -> Iterator[Rejection]:
        """Every request could be served by itself: what they compete for is at fault, or a constraint between them."""
        for request in self._tables.requests:
            for alternative in request.alternatives:
                between = bool(alternative.matches or alternative.distincts)
                reason = RejectionReason.CONSTRAINT if between else RejectionReason.COMBINATION
                devices = alternative.candidates
                yield self._rejection(alternative, reason, devices, devices)

    def _rejection(
        self,
        alternative: Alternative,
        reason: RejectionReason,
        rejected: int,
        remaining: int,
        detail: str = "",
    ) -> Rejection:
        return Rejection(
            claim=claim_name(self._tables.claims[alternative.claim]),
            request=alternative.name,
            reason=reason,
            devices=self._view.ids_of(rejected),
            remaining=remaining.bit_count(),
            wanted=alternative.number,
            detail=detail,
        )


class _LeftOut:
    """The devices that the search left out because no selector wants them (`focus`). In the reasons they count like all others."""

    def __init__(self, view: NodeView) -> None:
        self._shown = view.hardware
        self._others = [usage.hardware for usage in view.left_out]

    def dropped(self, selectors: Sequence[str], number: int) -> tuple[list[DeviceId], int]:
        """Those that the selector of this number drops, and how many pass it. At later tests there are none left."""
        found: list[DeviceId] = []
        remaining = 0
        if number < len(selectors):
            for hardware in self._others:
                before, _ = hardware.select(selectors[:number])
                after, _ = hardware.select(selectors[: number + 1])
                remaining += after.bit_count()
                found += [hardware.records[i].id for i in positions(before & ~after)]
        return found, remaining

    def added_to(self, rejection: Rejection, devices: list[DeviceId], remaining: int) -> Rejection:
        """The rejection with these devices as well, all of them in search order."""
        if not devices and not remaining:
            return rejection
        together = sorted((*rejection.devices, *devices), key=lambda d: self._order[d.pool_id])
        return replace(
            rejection, devices=tuple(together), remaining=rejection.remaining + remaining
        )

    @cached_property
    def _order(self) -> dict[PoolId, tuple[bool, PoolId]]:
        pools = [pool for hardware in (self._shown, *self._others) for pool in hardware.pools]
        return {pool.id: pool.search_order for pool in pools}
