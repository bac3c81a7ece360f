"""The built-in kinds: names, versions, defaults, rules and columns of each."""

from __future__ import annotations

from collections.abc import Iterator

from drayman.apiserver.kinds import (
    cluster_resources,
    core_resources,
    storage_resources,
    workload_resources,
)
from drayman.apiserver.kinds.admission import admission_plugins
from drayman.apiserver.kinds.device_resources import device_resources
from drayman.apiserver.served.resources import ApiResource, Subresource
from drayman.cel.device import check_selector

__all__ = ["admission_plugins", "builtin_resources"]


def builtin_resources(*, account_parts: tuple[Subresource, ...] = ()) -> Iterator[ApiResource]:
    """Every built-in resource. `account_parts` are the parts of service accounts that make tokens."""
    yield from core_resources.RESOURCES
    yield core_resources.service_accounts(account_parts)
    yield from workload_resources.RESOURCES
    yield from cluster_resources.RESOURCES
    yield from storage_resources.RESOURCES
    yield from device_resources(check_selector)
