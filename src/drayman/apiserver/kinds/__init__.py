"""The built-in kinds: names, versions, defaults, rules and columns of each."""

from __future__ import annotations

from collections.abc import Iterator

from drayman.apiserver.kinds import (
    cluster_resources,
    core_resources,
    device_resources,
    storage_resources,
    workload_resources,
)
from drayman.apiserver.kinds.admission import admission_plugins
from drayman.apiserver.served.resources import ApiResource

__all__ = ["admission_plugins", "builtin_resources"]


def builtin_resources() -> Iterator[ApiResource]:
    """Every built-in resource, in the order in which discovery lists them."""
    yield from core_resources.RESOURCES
    yield from workload_resources.RESOURCES
    yield from cluster_resources.RESOURCES
    yield from storage_resources.RESOURCES
    yield from device_resources.RESOURCES
