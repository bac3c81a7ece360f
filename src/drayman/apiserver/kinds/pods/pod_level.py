"""Resources that a pod requests as a whole, in addition to those of its containers."""

from __future__ import annotations

from collections.abc import Callable
from operator import add

from drayman.api.quantity import Quantity
from drayman.api.validation.field_errors import forbidden, invalid, invalid_each, not_supported
from drayman.apiserver.kinds.pods.resources import (
    COMPUTE,
    is_huge_pages,
    parse_amounts,
    requirements,
    resource_name_problems,
)
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

Amounts = dict[str, Quantity]


def default_pod_level(spec: Object) -> None:
    """Fill in the pod's requests from those of its containers, or from its own limits."""
    resources = spec["resources"]
    limits = map_at(resources, "limits")
    given = map_at(resources, "requests")
    if limits or given:
        for name, amount in containers_together(spec, "limits").items():
            if is_huge_pages(name) and name not in given and name not in limits:
                limits[name] = str(amount)
    if not limits:
        return
    for name, amount in containers_together(spec, "requests").items():
        if name in COMPUTE:
            given.setdefault(name, str(amount))
    for name, value in limits.items():
        if _is_supported(name):
            given.setdefault(name, value)
    resources["limits"] = limits
    if given:
        resources["requests"] = given


def containers_together(spec: Object, member: str) -> Amounts:
    """The most that the containers of a pod request at one time.

    Init containers run one after the other before the rest; those that go on running count with everything after them.
    """
    total: Amounts = {}
    lasting: Amounts = {}
    peak: Amounts = {}
    for container in items_at(spec, "containers"):
        total = _combined(total, parse_amounts(map_at(container, "resources", member)), add)
    for container in items_at(spec, "initContainers"):
        own = parse_amounts(map_at(container, "resources", member))
        if container.get("restartPolicy") == "Always":
            total, lasting = _combined(total, own, add), _combined(lasting, own, add)
            peak = _combined(peak, lasting, max)
        else:
            peak = _combined(peak, _combined(own, lasting, add), max)
    return _combined(total, peak, max)


def _combined(
    one: Amounts, other: Amounts, combine: Callable[[Quantity, Quantity], Quantity]
) -> Amounts:
    both = {name: combine(one[name], other[name]) for name in one if name in other}
    return one | other | both


def _is_supported(name: str) -> bool:
    return name in COMPUTE or is_huge_pages(name)


def _resource_name(name: str, path: str) -> Errors:
    problems = resource_name_problems(name)
    yield from invalid_each(path, name, problems)
    if not problems and not _is_supported(name):
        yield not_supported(path, name, COMPUTE)


def check_pod_level(spec: Object, path: str) -> Errors:
    """Amounts for the pod as a whole. References to claims are checked with the pod's claims."""
    place = f"{path}.resources"
    if text_at(spec, "os", "name") == "windows":
        yield forbidden(place, "may not be set for a windows pod")
        return
    yield from requirements(spec["resources"], place, _resource_name)
    yield from _consistent(spec, place)


def _consistent(spec: Object, path: str) -> Errors:
    requests = parse_amounts(map_at(spec, "resources", "requests"))
    limits = parse_amounts(map_at(spec, "resources", "limits"))
    for name, amount in containers_together(spec, "requests").items():
        if name in requests and amount > requests[name]:
            detail = f"must be greater than or equal to aggregate container requests of {amount}"
            yield invalid(f"{path}.requests[{name}]", str(requests[name]), detail)
    for name, amount in containers_together(spec, "limits").items():
        if is_huge_pages(name) and name in limits and amount > limits[name]:
            detail = f"must be greater than or equal to aggregate container limits of {amount}"
            yield invalid(f"{path}.limits[{name}]", str(limits[name]), detail)
    for where, container in each_at(spec, path, "containers"):
        for name, amount in parse_amounts(map_at(container, "resources", "limits")).items():
            if name in limits and amount > limits[name]:
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                yield invalid(f"{where}[{name}].limits", str(amount), detail)
