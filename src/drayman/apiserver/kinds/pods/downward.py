"""References from inside a pod to the pod's own fields and to the resources of its containers."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from drayman.api.quantity import Quantity
from drayman.api.validation.field_errors import invalid, not_supported, required
from drayman.api.validation.names import label_key
from drayman.apiserver.kinds.reading import text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

ENVIRONMENT_FIELDS: Final = tuple(
    "metadata.name metadata.namespace metadata.uid spec.nodeName spec.serviceAccountName status.hostIP status.hostIPs"
    " status.podIP status.podIPs".split()
)
FILE_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_NAMED: Final = frozenset(
    {
        *ENVIRONMENT_FIELDS,
        *FILE_FIELDS,
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
    }
)
"""All fields with a name, whether or not they may be used in the given place."""
_RENAMED: Final = {"spec.host": "spec.nodeName"}
_SUBSCRIPTED: Final = re.compile(r"(.+?)\['(.*)'\]", re.DOTALL)
_AMOUNTS: Final = tuple(
    f"{kind}.{resource}"
    for kind in ("limits", "requests")
    for resource in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_BYTE_DIVISORS: Final = (
    *("1", "1k", "1M", "1G", "1T", "1P", "1E"),
    *("1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"),
)
_MEASURED: Final = {
    "memory": "memory",
    "ephemeral-storage": "local ephemeral storage",
}


def field_reference(reference: Object, allowed: Collection[str], path: str) -> Errors:
    """A reference to a field of the pod, or to one of its labels or annotations."""
    version, field = text_at(reference, "apiVersion"), text_at(reference, "fieldPath")
    if not version:
        yield required(f"{path}.apiVersion")
        return
    if not field:
        yield required(f"{path}.fieldPath")
        return
    subscripted = _SUBSCRIPTED.fullmatch(field)
    if problem := _label_problem(version, field, subscripted):
        yield invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}")
    elif subscripted:
        name, key = subscripted.groups()
        key = key.lower() if name == "metadata.annotations" else key
        yield from label_key(key, path)
    elif (known := _RENAMED.get(field, field)) not in allowed:
        yield not_supported(f"{path}.fieldPath", known, allowed)


def _label_problem(version: str, field: str, subscripted: re.Match[str] | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscripted:
        if subscripted[1] in ("metadata.annotations", "metadata.labels"):
            return ""
        return f"field label does not support subscript: {field}"
    return "" if field in _NAMED or field in _RENAMED else f"field label not supported: {field}"


def amount_reference(reference: Object, path: str, *, names_container: bool) -> Errors:
    """A reference to a limit or request of a container. Outside the container it has to name it."""
    resource = text_at(reference, "resource")
    if names_container and not text_at(reference, "containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _AMOUNTS and not resource.startswith(_HUGE_PAGES):
        yield not_supported(f"{path}.resource", resource, _AMOUNTS)
    divisor = Quantity.parse(str(reference.get("divisor") or 0))
    if divisor != Quantity(0):
        yield from _divisor(resource, str(divisor), f"{path}.divisor")


def _divisor(resource: str, divisor: str, path: str) -> Errors:
    measured = _MEASURED.get(resource.partition(".")[2])
    if resource.startswith(_HUGE_PAGES):
        measured = "hugepages"
    if resource in ("limits.cpu", "requests.cpu"):
        if divisor not in ("1", "1m"):
            detail = "only divisor's values 1m and 1 are supported with the cpu resource"
            yield invalid(path, resource, detail)
    elif measured and divisor not in _BYTE_DIVISORS:
        detail = f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the {measured} resource"
        yield invalid(path, resource, detail)
