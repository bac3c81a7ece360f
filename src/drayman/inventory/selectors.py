"""Verdicts of CEL selectors, each computed once for all devices that the selector cannot tell apart.

A compiled selector knows what it reads. Devices that agree on that share a verdict, so a thousand nodes of the same hardware cost
one evaluation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from drayman.api.resource import Device
from drayman.cel.device import Selector, compile_selector
from drayman.cel.device_types import Features as CelFeatures
from drayman.cel.errors import CompileError, EvaluationError
from drayman.inventory.device import DeviceRecord

_MOST_SELECTORS = 4_096  # compiled expressions kept; clusters have tens, attackers have more
_MOST_VERDICTS = (
    65_536  # distinct views of one selector; an expression over serial numbers has many
)


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """Why a selector has no verdict: it does not compile, or fails on a device."""

    message: str


class SelectorCache:
    """Compiled selectors and their verdicts by what they read."""

    def __init__(self, *, list_attributes: bool) -> None:
        self._features = CelFeatures(list_attributes=list_attributes)
        self._compiled: dict[str, Selector | SelectorFailure] = {}
        self._verdicts: dict[str, dict[Hashable, bool | SelectorFailure]] = {}

    def compiled(self, expression: str) -> Selector | SelectorFailure:
        found = self._compiled.get(expression)
        if found is None:
            if len(self._compiled) >= _MOST_SELECTORS:
                self._compiled.clear()
                self._verdicts.clear()
            found = self._compile(expression)
            self._compiled[expression] = found
            self._verdicts[expression] = {}
        return found

    def _compile(self, expression: str) -> Selector | SelectorFailure:
        try:
            return compile_selector(expression, features=self._features)
        except CompileError as error:
            return SelectorFailure(str(error))

    def judged(
        self, expression: str, records: Sequence[DeviceRecord]
    ) -> tuple[list[int], list[int]]:
        """The positions of the devices that match, and of those of which that cannot be said."""
        selector = self.compiled(expression)
        if isinstance(selector, SelectorFailure):
            return [], list(range(len(records)))
        known, key = self._verdicts[expression], selector.key
        accepted: list[int] = []
        failed: list[int] = []
        for position, record in enumerate(records):
            driver, device = record.id.driver, record.device
            verdict = known.get(key(driver, device))
            if verdict is None:
                verdict = self.verdict(expression, driver, device)
            if verdict is True:
                accepted.append(position)
            elif verdict is not False:
                failed.append(position)
        return accepted, failed

    def verdict(self, expression: str, driver: str, device: Device) -> bool | SelectorFailure:
        """Whether the device matches, or why that cannot be said."""
        selector = self.compiled(expression)
        if isinstance(selector, SelectorFailure):
            return selector
        known = self._verdicts[expression]
        key = selector.key(driver, device)
        verdict = known.get(key)
        if verdict is None:
            if len(known) >= _MOST_VERDICTS:
                known.clear()
            verdict = known[key] = _evaluate(selector, driver, device)
        return verdict


def _evaluate(selector: Selector, driver: str, device: Device) -> bool | SelectorFailure:
    try:
        return selector.matches(driver, device)
    except EvaluationError as error:
        return SelectorFailure(str(error))
