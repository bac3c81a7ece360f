"""How many of a node's devices are left for each request after each test, whether or not they are enough in the end.

The tests and their order are those of `diagnosis`, which says why one search failed, device by device. This is the form in which
thousands of nodes can be counted: sets only, no names, the same for all nodes of one signature. Everything comes from the sets that a
search uses, but a funnel also exists where a search ends in a fault before it looks at any device.

Constraints leave what `agreement` says; the count then leaves all or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.allocator.problem.focus import selectors_of
from drayman.allocator.problem.limits import MAX_ENTRIES
from drayman.allocator.problem.prepare import without_capacity
from drayman.allocator.problem.question import Question, WantedDevices, WantedRequest
from drayman.allocator.refusals.agreement import Agreement
from drayman.allocator.refusals.sieve import Hurdle, Passed, Sieve
from drayman.inventory.features import Features
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.view import NodeView

UNREADABLE: Final = "selector fails"
"""What is said of devices on which a selector has no verdict."""


def sieves(
    view: NodeView, question: Question, *, with_taints: bool = True
) -> tuple[tuple[Sieve, ...], ...]:
    """By request and alternative, what each test leaves on the node. Never raises on account of the claims."""
    return _Sifting(view, question, with_taints).run()


def left_out(view: NodeView, sieve: Sieve) -> list[tuple[NodeHardware, tuple[int, ...]]]:
    """What each test leaves of the devices that a view does not show because no selector wants them (`focus`)."""
    device_class = view.device_class(sieve.wanted.spec.device_class_name)
    given = () if device_class is None else device_class.spec.selectors
    of_class = tuple([selector.cel.expression for selector in given if selector.cel is not None])
    found = []
    for hardware in (usage.hardware for usage in view.left_out):
        left = hardware.everything & hardware.selects_node
        bits: list[int] = []
        for passed in sieve.passed:
            if passed.test is Hurdle.CLASS:
                left &= 0 if device_class is None else hardware.select(of_class)[0]
            elif passed.test is Hurdle.SELECTOR:
                left &= hardware.select((passed.detail,))[0]
            elif passed.test is Hurdle.FEATURE and not bits:
                left = 0  # it cannot be asked for, whatever the device
            bits.append(left)
        found.append((hardware, tuple(bits)))
    return found


def forbidden(request: WantedRequest, wanted: WantedDevices, features: Features) -> str:
    """The feature that a request needs and that is off; empty if there is none."""
    if request.request.exactly is None and not features.prioritized_list:
        return "prioritized lists are off"
    exactly = request.request.exactly
    if exactly is not None and exactly.admin_access is not None and not features.admin_access:
        return "admin access is off"
    if wanted.spec.capacity is not None and not features.consumable_capacity:
        return "consumable capacity is off"
    return ""


class _Sifting:
    def __init__(self, view: NodeView, question: Question, with_taints: bool) -> None:
        self._view = view
        self._hardware = view.hardware
        self._question = question
        self._with_taints = with_taints
        self._everything = self._hardware.everything & self._hardware.selects_node
        self._selectors = iter(selectors_of(view, question))

    def run(self) -> tuple[tuple[Sieve, ...], ...]:
        alone = [
            [self._alone(request, wanted) for wanted in request.alternatives]
            for request in self._question.requests
        ]
        agreed = Agreement(self._view, self._question, alone)
        return tuple(
            tuple([self._counted(sieve, list(agreed.steps(sieve))) for sieve in alternatives])
            for alternatives in alone
        )

    def _alone(self, request: WantedRequest, wanted: WantedDevices) -> Sieve:
        """The tests that look at one device at a time."""
        passed: list[Passed] = []
        left, sequence = self._everything, self._everything
        is_all, is_before_use = wanted.spec.allocation_mode == "All", True
        for step in self._tests(request, wanted):
            is_before_use = is_before_use and step.test is not Hurdle.FREE
            left &= step.devices
            lost = tuple([(why, devices) for why, devices in step.lost if devices])
            passed.append(Passed(step.test, left, step.detail, lost))
            if is_before_use or step.test is Hurdle.CAPACITY:
                sequence &= step.devices
        return Sieve(wanted, self._everything, tuple(passed), sequence if is_all else None)

    def _tests(self, request: WantedRequest, wanted: WantedDevices) -> Iterator[Passed]:
        hardware, view, features = self._hardware, self._view, self._hardware.features
        reason = forbidden(request, wanted, features)
        if reason:
            yield Passed(Hurdle.FEATURE, 0, reason)
        yield from self._selections(wanted)
        if not features.binding_conditions:
            yield Passed(Hurdle.FEATURE, ~hardware.binding, "binding conditions are off")
        exactly = request.request.exactly
        if exactly is not None and exactly.admin_access:
            yield Passed(Hurdle.FREE, ~0, "admin access")
        else:
            yield Passed(Hurdle.FREE, ~view.usage.in_use)
        tolerated = view.tolerated(wanted.spec.tolerations) if self._with_taints else ~0
        yield Passed(Hurdle.TAINTS, tolerated)
        yield Passed(
            Hurdle.CAPACITY,
            ~without_capacity(view, hardware.charges(wanted.amounts)),
            _asked(wanted),
        )
        yield Passed(
            Hurdle.COUNTERS,
            ~(view.usage.overcommitted | view.usage.counter_blocked & ~view.usage.paid),
        )
        if not features.partitionable_devices:
            yield Passed(Hurdle.FEATURE, ~hardware.consumers, "partitionable devices are off")

    def _selections(self, wanted: WantedDevices) -> Iterator[Passed]:
        name = wanted.spec.device_class_name
        expressions = next(self._selectors)
        device_class = self._view.device_class(name)
        if expressions is None or device_class is None:
            yield Passed(Hurdle.CLASS, 0, f"{name} does not exist" if name else "no class is named")
            return
        of_class = len(device_class.spec.selectors)
        accepted, failed = self._hardware.select(expressions[:of_class])
        passing = accepted & self._everything
        yield Passed(Hurdle.CLASS, accepted, name, ((UNREADABLE, failed & self._everything),))
        for expression in expressions[of_class:]:
            accepted, failed = self._hardware.select((expression,))
            yield Passed(Hurdle.SELECTOR, accepted, expression, ((UNREADABLE, failed & passing),))
            passing &= accepted

    def _counted(self, sieve: Sieve, constraints: list[Passed]) -> Sieve:
        passed = (*sieve.passed, *constraints)
        left = passed[-1].devices
        objection = ""
        if sieve.all_of is not None and self._view.problems:
            problem = self._view.problems[0]
            objection = f"pool {problem.id} is {problem.state.value}"
        elif sieve.number > MAX_ENTRIES:
            objection = f"a claim may have no more than {MAX_ENTRIES}"
        needed = 0 if sieve.all_of is None else sieve.all_of
        is_enough = not objection and not needed & ~left and left.bit_count() >= sieve.number
        lost = ((objection, left),) if objection else ()
        count = Passed(Hurdle.COUNT, left if is_enough else 0, lost=lost)
        return Sieve(sieve.wanted, sieve.everything, (*passed, count), sieve.all_of)


def _asked(wanted: WantedDevices) -> str:
    if wanted.spec.capacity is None:
        return ""
    return ", ".join(f"{name}: {q}" for name, q in sorted(wanted.spec.capacity.requests.items()))
