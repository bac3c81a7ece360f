"""The quality-of-service class of a pod: how it is treated when its node runs short of resources."""

from __future__ import annotations

from typing import Final

from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.apiserver.kinds.pods.resources import COMPUTE
from drayman.apiserver.kinds.reading import items_at, map_at
from drayman.apiserver.served.strategy import Object

BEST_EFFORT: Final = "BestEffort"
BURSTABLE: Final = "Burstable"
GUARANTEED: Final = "Guaranteed"
_ZERO: Final = Quantity(0)


def quality_class(spec: Object) -> str:
    """BestEffort requests nothing, Guaranteed requests as much as its limits, everything else is Burstable."""
    own = spec.get("resources")
    if isinstance(own, dict) and (_compute(own, "limits") or _compute(own, "requests")):
        return _class_of([own])
    containers = [*items_at(spec, "containers"), *items_at(spec, "initContainers")]
    return _class_of([map_at(container, "resources") for container in containers])


def _class_of(resources: list[dict[str, Json]]) -> str:
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    limited = True
    for requirement in resources:
        for name, amount in _compute(requirement, "requests").items():
            requests[name] = requests.get(name, _ZERO) + amount
        own_limits = _compute(requirement, "limits")
        for name, amount in own_limits.items():
            limits[name] = limits.get(name, _ZERO) + amount
        limited = limited and len(own_limits) == len(COMPUTE)
    if not requests and not limits:
        return BEST_EFFORT
    if (
        limited
        and requests == {name: limits[name] for name in requests}
        and len(requests) == len(limits)
    ):
        return GUARANTEED
    return BURSTABLE


def _compute(requirement: dict[str, Json], member: str) -> dict[str, Quantity]:
    found = map_at(requirement, member)
    amounts = {name: Quantity.parse(str(found[name])) for name in COMPUTE if name in found}
    return {name: amount for name, amount in amounts.items() if amount > _ZERO}
