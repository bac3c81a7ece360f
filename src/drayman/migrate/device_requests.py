"""Containers that ask a device plugin for devices: the claims that ask a DRA driver for the same.

Each container that asks gets its own request in one template for the pod, so it sees the devices it saw before. An init container ran
before the others, which then reused its devices, so it shares one of their requests that is large enough.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from drayman.api.struct import Json
from drayman.migrate.model import Scope
from drayman.migrate.plugin_resources import PluginDevice, device_for, refusal_of
from drayman.migrate.shapes import Object, changed_items, child, numbered, text, without

LISTS: Final = ("containers", "initContainers")
_AMOUNTS: Final = ("limits", "requests")
_NO_DEVICE: Final = re.compile(r"[^/]+|(?:[^/]+\.)?kubernetes\.io/.+")
_LONGEST_LABEL: Final = 63


@dataclass(frozen=True, slots=True)
class Ask:
    """A container's request for an amount of a resource, and the claim's request that it becomes a part of."""

    container: tuple[str, int]
    """Which list, and the position in it."""
    name: str
    resource: str
    device: PluginDevice
    count: int
    is_before_others: bool
    """Whether it is an init container's, which ends before the others start."""
    request: str = ""


def asks_of(spec: Object, path: str, scope: Scope) -> list[Ask]:
    """What the containers of a pod ask device plugins for. Reports what cannot be carried over."""
    asks = []
    for key in LISTS:
        for place, container in numbered(spec, key):
            where = f"{path}.{key}[{place}].resources"
            always = text(container, "restartPolicy") == "Always"
            for resource, amount in _amounts(container).items():
                if resource in scope.survey.resources_of_classes:
                    continue
                device = device_for(resource)
                if device is None:
                    _say_why(resource, f"{where}.limits[{resource}]", scope)
                    continue
                count = _count(amount)
                if count is None:
                    scope.lost(
                        f"{where}.limits[{resource}]", f"{amount} is not a number of devices"
                    )
                    continue
                own = text(container, "name")
                before = key == "initContainers" and not always
                asks.append(Ask((key, place), own, resource, device, count, before))
    return asks


def _amounts(container: Object) -> dict[str, Json]:
    """All resources that a container asks for. What is only in limits is asked for too."""
    return {
        resource: amount
        for key in reversed(_AMOUNTS)
        for resource, amount in child(container, "resources", key).items()
    }


def _say_why(resource: str, path: str, scope: Scope) -> None:
    if why := refusal_of(resource):
        scope.lost(
            path,
            f"left as it is: it {why}" if why.startswith("stands") else f"left as it is: {why}",
        )
    elif not _NO_DEVICE.fullmatch(resource):
        scope.note(path, "left as it is: not known to be a device that a DRA driver has")


def _count(amount: Json) -> int | None:
    """A whole number of devices."""
    written = str(amount)
    return int(written) if written.isdecimal() and len(written) < 10 else None


def named(asks: list[Ask]) -> list[Ask]:
    """The asks with the request that each becomes a part of; those for zero devices have none."""
    lasting = [ask for ask in asks if not ask.is_before_others and ask.count]
    holders = Counter(ask.device.request for ask in lasting)
    result, taken = [], set[str]()
    for ask in lasting:
        own = ask.device.request
        wanted = own if holders[own] == 1 else f"{ask.name}-{own}"
        result.append(replace(ask, request=_free(wanted, taken)))
    for ask in asks:
        if ask.is_before_others and ask.count:
            host = _host(ask, result)
            request = host.request if host else _free(f"{ask.name}-{ask.device.request}", taken)
            result.append(replace(ask, request=request))
    return result


def _free(wanted: str, taken: set[str]) -> str:
    """A name that is not taken yet; marks it as taken."""
    base = wanted[: _LONGEST_LABEL - 3].rstrip("-")
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def _host(ask: Ask, others: list[Ask]) -> Ask | None:
    """The smallest request of another container that an init container can use."""
    fitting = [
        other for other in others if other.resource == ask.resource and other.count >= ask.count
    ]
    return min(fitting, key=lambda other: other.count, default=None)


def requests_for(asks: list[Ask]) -> dict[str, Ask]:
    """The requests to make, by name, each with the ask that it is made for."""
    made: dict[str, Ask] = {}
    for ask in asks:
        made.setdefault(ask.request, ask)
    return made


def with_claims(spec: Object, asks: list[Ask], removed: list[Ask], claim: str) -> Object:
    """The pod with its containers naming requests of a claim instead of resources."""
    single = len({ask.request for ask in asks}) == 1

    def entries(key: str, place: int) -> Iterator[Object]:
        own = [ask for ask in asks if ask.container == (key, place)]
        for ask in own:
            yield {"name": claim} if single else {"name": claim, "request": ask.request}

    for key in LISTS:

        def change(place: int, container: Object, key: str = key) -> Object:
            gone = [ask.resource for ask in removed if ask.container == (key, place)]
            if not gone:
                return container
            return _with_resources(container, gone, list(entries(key, place)))

        spec = changed_items(spec, key, change)
    return spec


def _with_resources(container: Object, gone: list[str], claims: list[Object]) -> Object:
    resources = child(container, "resources")
    for key in _AMOUNTS:
        if key in resources:
            left = without(child(resources, key), *gone)
            resources = {**resources, key: left} if left else without(resources, key)
    if claims:
        before = resources.get("claims")
        resources = {
            **resources,
            "claims": [*(before if isinstance(before, list) else ()), *claims],
        }
    return {**container, "resources": resources} if resources else without(container, "resources")
