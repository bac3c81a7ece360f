"""Which devices a request can have, whoever has them now; and, if there are too few, where the others were left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Final

from drayman.api.resource import DeviceClass, DeviceSelector, RequestSpec
from drayman.cel.device import compile_selector
from drayman.cel.errors import CompileError
from drayman.inventory.device import Amount
from drayman.inventory.pool import PoolState
from drayman.quota.charging.fleet import Fleet
from drayman.quota.charging.mappings import DeviceClassMapping
from drayman.quota.charging.measuring import serving
from drayman.quota.charging.outcome import ANY_DRIVER, Code, refuse
from drayman.quota.charging.rules import Rules

_MOST_EXPRESSIONS: Final = 4_096


class Match:
    """The devices that match a request. Worked out when first asked for."""

    def __init__(
        self,
        fleet: Fleet,
        device_class: DeviceClass | None,
        spec: RequestSpec,
        mappings: Sequence[DeviceClassMapping],
        rules: Rules,
        path: str,
    ) -> None:
        self._fleet = fleet
        self._of_class = () if device_class is None else expressions_of(device_class.spec.selectors)
        self._own = expressions_of(spec.selectors)
        self._spec = spec
        self._measured = [measure for mapping in mappings for measure in mapping.measures]
        self._only_measured = bool(mappings) and all(mapping.sources for mapping in mappings)
        self._rules = rules
        self._path = path

    @property
    def drivers(self) -> frozenset[str]:
        """Whose devices are looked at."""
        if self._only_measured:
            return frozenset(measure.driver for measure in self._measured)
        return frozenset((ANY_DRIVER,))

    @cached_property
    def devices(self) -> int:
        """Those that pass the selectors, are not tainted, and have the capacities that are asked for. Raises RefusedError."""
        class_name = self._spec.device_class_name
        _check(self._of_class, f"deviceclass/{class_name} spec.selectors")
        _check(self._own, f"{self._path}.selectors")
        expressions = (*self._of_class, *self._own)
        found, failing = self._fleet.selected(expressions, self._among & self._untainted)
        if failing:
            text = f"a selector fails {self._fleet.failure(expressions, failing)}"
            raise refuse(Code.SELECTOR_INVALID, f"{self._path}.selectors", text, retryable=True)
        return found & self._serving

    def summary(self, devices: int) -> str:
        """How many devices match, and what happened to the others of the class."""
        parts = list(self._losses())
        text = f"{devices.bit_count()} match"
        return f"{text} ({', '.join(parts)})" if parts else text

    def _losses(self) -> Iterator[str]:
        left, _ = self._fleet.selected(self._of_class, self._among)
        yield f"{left.bit_count()} of the class"
        for index, expression in enumerate(self._own):
            passing, _ = self._fleet.selected((expression,), left)
            if passing != left:
                yield f"{(left & ~passing).bit_count()} refused by selectors[{index}]"
            left = passing
        for kept, loss in ((self._untainted, "tainted"), (self._serving, "without the capacity")):
            if left & ~kept:
                yield f"{(left & ~kept).bit_count()} {loss}"
            left &= kept
        published = sum(
            all(
                self._fleet.hardware.accepts(each, record) for each in (*self._of_class, *self._own)
            )
            for pool in self._fleet.hardware.problems
            if pool.state is PoolState.INCOMPLETE
            for record in pool.published
        )
        if published:
            yield f"{published} more in pools that are still being published"

    @cached_property
    def _among(self) -> int:
        """All devices, or those of the drivers that are measured where no others count."""
        if not self._only_measured:
            return self._fleet.scope
        among = 0
        for driver in self.drivers:
            among |= self._fleet.of_driver(driver)
        return among

    @cached_property
    def _untainted(self) -> int:
        if not self._rules.taints:
            return self._fleet.hardware.everything
        return self._fleet.tolerated(self._spec.tolerations)

    @cached_property
    def _serving(self) -> int:
        """Where devices are measured, the measure says which of them can serve the request."""
        capacities = capacities_of(self._spec)
        if not (self._rules.whole_requests and capacities) or self._measured:
            return self._fleet.hardware.everything
        return serving(self._fleet, capacities)


def expressions_of(selectors: tuple[DeviceSelector, ...]) -> tuple[str, ...]:
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)


def capacities_of(spec: RequestSpec) -> dict[str, Amount]:
    """How much of which capacities a request asks for."""
    if spec.capacity is None:
        return {}
    return {name: quantity.amount for name, quantity in spec.capacity.requests.items()}


def _check(expressions: tuple[str, ...], path: str) -> None:
    """Raise RefusedError if one of them does not compile."""
    for index, expression in enumerate(expressions):
        if problem := _compile_problem(expression):
            raise refuse(Code.SELECTOR_INVALID, f"{path}[{index}]", problem)


@lru_cache(maxsize=_MOST_EXPRESSIONS)
def _compile_problem(expression: str) -> str:
    """Why an expression does not compile; empty if it does."""
    try:
        compile_selector(expression)
    except CompileError as error:
        return str(error)
    return ""
