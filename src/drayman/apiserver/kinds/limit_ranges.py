"""Limit ranges in admission: what they fill in for pods, and which pods and volume claims they refuse.

A namespace without limit ranges costs one lookup that finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.quantity import Quantity
from drayman.apiserver.kinds.pods.pod_level import Amounts, containers_together
from drayman.apiserver.kinds.pods.resources import parse_amounts
from drayman.apiserver.kinds.reading import items_at, map_at, member, text_at
from drayman.apiserver.protocol.errors import forbidden
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted

ANNOTATION: Final = "kubernetes.io/limit-ranger"
_ZERO: Final = Quantity(0)


class LimitRanges(AdmissionPlugin):
    """Gives containers without amounts the namespace's defaults, and refuses amounts that are out of range."""

    def admit(self, write: Admitted) -> None:
        if write.new is None or not _is_pod(write):
            return
        for limit_range in _ranges(write):
            _fill_in(write.new, limit_range)

    def validate(self, write: Admitted) -> None:
        if write.new is None:
            return
        is_pod = _is_pod(write)
        is_claim = write.resource.storage_name == "persistentvolumeclaims" and not write.subresource
        if not (is_pod or is_claim):
            return
        for limit_range in _ranges(write):
            find = _pod_problems if is_pod else _claim_problems
            found = list(find(write.new, limit_range))
            if found:
                why = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
                raise forbidden(write.resource.subject(write.name), why)


def _is_pod(write: Admitted) -> bool:
    if write.resource.storage_name != "pods":
        return False
    return (write.operation, write.subresource) in (("CREATE", ""), ("UPDATE", "resize"))


def _ranges(write: Admitted) -> list[Object]:
    return write.context.objects.list("limitranges", write.namespace)


def _fill_in(pod: Object, limit_range: Object) -> None:
    limits: Object = {}
    requests: Object = {}
    for item in items_at(limit_range, "spec", "limits"):
        if text_at(item, "type") == "Container":
            requests |= map_at(item, "defaultRequest")
            limits |= map_at(item, "default")
    notes: list[str] = []
    for kind, called in (("containers", "container"), ("initContainers", "init container")):
        for container in items_at(pod, "spec", kind):
            asked = _add_missing(container, "requests", requests)
            limited = _add_missing(container, "limits", limits)
            name = text_at(container, "name")
            for word, resources in (("request", asked), ("limit", limited)):
                if resources:
                    notes.append(f"{', '.join(resources)} {word} for {called} {name}")
    if notes:
        annotations = member(member(pod, "metadata"), "annotations")
        annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def _add_missing(container: Object, name: str, amounts: Object) -> list[str]:
    """Give a container the amounts it does not name. Returns their names, in order."""
    own = map_at(container, "resources", name)
    missing = sorted(amounts.keys() - own.keys())
    if missing:
        added = {resource: amounts[resource] for resource in missing}
        member(container, "resources")[name] = {**own, **added}
    return missing


def _pod_problems(pod: Object, limit_range: Object) -> Iterator[str]:
    for item in items_at(limit_range, "spec", "limits"):
        match text_at(item, "type"):
            case "Container":
                for kind in ("containers", "initContainers"):
                    for container in items_at(pod, "spec", kind):
                        requests = parse_amounts(map_at(container, "resources", "requests"))
                        limits = parse_amounts(map_at(container, "resources", "limits"))
                        yield from _problems(item, requests, limits)
            case "Pod":
                spec = map_at(pod, "spec")
                yield from _problems(item, _whole(spec, "requests"), _whole(spec, "limits"))


def _whole(spec: Object, name: str) -> Amounts:
    """What a pod requests as a whole, or else the total of its containers."""
    own = parse_amounts(map_at(spec, "resources", name))
    return containers_together(spec, name) | own


def _claim_problems(claim: Object, limit_range: Object) -> Iterator[str]:
    requests = parse_amounts(map_at(claim, "spec", "resources", "requests"))
    for item in items_at(limit_range, "spec", "limits"):
        if text_at(item, "type") != "PersistentVolumeClaim":
            continue
        for name, least in parse_amounts(map_at(item, "min")).items():
            yield from _too_little(item, name, least, requests, {})
        for name, most in parse_amounts(map_at(item, "max")).items():
            start = f"maximum {name} usage per {item['type']} is {most}"
            if name not in requests:
                yield f"{start}.  No request is specified"
            elif requests[name] > most:
                yield f"{start}, but request is {requests[name]}"


def _problems(item: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in parse_amounts(map_at(item, "min")).items():
        yield from _too_little(item, name, least, requests, limits)
    for name, most in parse_amounts(map_at(item, "max")).items():
        start = f"maximum {name} usage per {item['type']} is {most}"
        if name not in limits:
            yield f"{start}.  No limit is specified"
        elif limits[name] > most:
            yield f"{start}, but limit is {limits[name]}"
        elif name in requests and requests[name] > most:
            yield f"{start}, but request is {requests[name]}"
    for name, ratio in parse_amounts(map_at(item, "maxLimitRequestRatio")).items():
        yield from _too_far_apart(item, name, ratio, requests, limits)


def _too_little(
    item: Object, name: str, least: Quantity, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    start = f"minimum {name} usage per {item['type']} is {least}"
    if name not in requests:
        yield f"{start}.  No request is specified"
    elif requests[name] < least:
        yield f"{start}, but request is {requests[name]}"
    elif name in limits and limits[name] < least:
        yield f"{start}, but limit is {limits[name]}"


def _too_far_apart(
    item: Object, name: str, ratio: Quantity, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    start = f"{name} max limit to request ratio per {item['type']} is {ratio}"
    request, limit = requests.get(name, _ZERO), limits.get(name, _ZERO)
    if request == _ZERO:
        yield f"{start}, but no request is specified or request is 0"
    elif limit == _ZERO:
        yield f"{start}, but no limit is specified or limit is 0"
    else:
        found = limit.milli() / request.milli()
        if found * 1000 > ratio.milli():
            yield f"{start}, but provided ratio is {found:f}"
