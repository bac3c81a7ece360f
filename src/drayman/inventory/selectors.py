"""Verdicts of CEL selectors, each computed once for all devices that the selector cannot distinguish.

A compiled selector knows what it reads. Devices that agree on that share a verdict, so a thousand nodes of the same hardware cost
one evaluation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial

from drayman.api.resource import Device
from drayman.bounded import Bounded
from drayman.cel.device import Selector, compile_selector
from drayman.cel.device_types import Features as CelFeatures
from drayman.cel.errors import CompileError, EvaluationError
from drayman.cel.reads import Reads
from drayman.inventory.allowance import BYTE, Allowance
from drayman.inventory.device import DeviceRecord

_MOST_SELECTORS = 4_096  # compiled expressions kept; clusters have tens, attackers have more
_MOST_VERDICTS = (
    65_536  # distinct views of one selector; an expression over serial numbers has many
)


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """Why a selector has no verdict: it does not compile, or fails on a device."""

    message: str


class _Judge:
    """A compiled selector and its verdicts by what it reads."""

    __slots__ = ("cost", "key", "selector", "verdicts")

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        # Worked out at once: this takes about as long as compiling, and whoever has time for that has time for this.
        self.cost, self.key = selector.max_cost, selector.key
        self.verdicts: Bounded[Hashable, bool | SelectorFailure] = Bounded(_MOST_VERDICTS)

    def verdict(self, driver: str, device: Device) -> bool | SelectorFailure:
        key = self.key(driver, device)
        verdict = self.verdicts.get(key)
        if verdict is None:
            verdict = self.verdicts[key] = self._evaluate(driver, device)
        return verdict

    def _evaluate(self, driver: str, device: Device) -> bool | SelectorFailure:
        try:
            return self.selector.matches(driver, device)
        except EvaluationError as error:
            return SelectorFailure(str(error))


class SelectorCache:
    """Compiled selectors and their verdicts by what they read."""

    def __init__(self, *, list_attributes: bool) -> None:
        self._features = CelFeatures(list_attributes=list_attributes)
        self._judges: Bounded[str, _Judge | SelectorFailure] = Bounded(_MOST_SELECTORS)
        self.allowance = Allowance()

    def _judge(self, expression: str) -> _Judge | SelectorFailure:
        found = self._judges.get(expression)
        if found is None:
            self.allowance.check(len(expression) * BYTE, partial(self._learn, expression))
            found = self._learn(expression)
        return found

    def _learn(self, expression: str) -> _Judge | SelectorFailure:
        found = self._judges.get(expression)
        if found is None:  # Others may have waited for the same.
            found = self._judges[expression] = self._compile(expression)
            self.allowance.keep()
        return found

    def _evaluate(self, judge: _Judge, driver: str, device: Device) -> bool | SelectorFailure:
        self.allowance.check(judge.cost, partial(judge.verdict, driver, device))
        verdict = judge.verdict(driver, device)
        self.allowance.keep()
        return verdict

    def _compile(self, expression: str) -> _Judge | SelectorFailure:
        try:
            return _Judge(compile_selector(expression, features=self._features))
        except CompileError as error:
            return SelectorFailure(str(error))

    def reads(self, expression: str) -> Reads:
        """What a selector reads of a device: nothing, if it does not compile."""
        judge = self._judge(expression)
        return Reads() if isinstance(judge, SelectorFailure) else judge.selector.reads

    def judged(
        self, expression: str, records: Sequence[DeviceRecord]
    ) -> tuple[list[int], list[int]]:
        """The positions of the devices that match, and of those without a verdict."""
        judge = self._judge(expression)
        if isinstance(judge, SelectorFailure):
            return [], list(range(len(records)))
        self.allowance.spend(len(records))
        known, key = judge.verdicts, judge.key
        accepted: list[int] = []
        failed: list[int] = []
        for position, record in enumerate(records):
            driver, device = record.id.driver, record.device
            verdict = known.get(key(driver, device))
            if verdict is None:
                verdict = self._evaluate(judge, driver, device)
            if verdict is True:
                accepted.append(position)
            elif verdict is not False:
                failed.append(position)
        return accepted, failed

    def verdict(self, expression: str, driver: str, device: Device) -> bool | SelectorFailure:
        """Whether the device matches, or why there is no verdict."""
        judge = self._judge(expression)
        if isinstance(judge, SelectorFailure):
            return judge
        verdict = judge.verdicts.get(judge.key(driver, device))
        return self._evaluate(judge, driver, device) if verdict is None else verdict
