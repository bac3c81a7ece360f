"""Small core kinds: service accounts, quotas, limit ranges and endpoints."""

from __future__ import annotations

from typing import Final

from drayman.apiserver.kinds.quota_rules import (
    check_limit_range,
    check_quota,
    check_quota_update,
)
from drayman.apiserver.kinds.reading import each_at, member, set_default
from drayman.apiserver.kinds.rules import Rules
from drayman.apiserver.served.strategy import Context, Object


def _default_limits(obj: Object, _context: Context) -> None:
    """Missing amounts for containers follow from the others: a limit from the maximum, a request from the limit."""
    for _, item in each_at(obj, "", "spec", "limits"):
        if item.get("type") != "Container":
            continue
        limits, requests = member(item, "default"), member(item, "defaultRequest")
        for source, target in (
            (item.get("max"), limits),
            (limits, requests),
            (item.get("min"), requests),
        ):
            for name, amount in (source or {}).items():
                target.setdefault(name, amount)


def _default_endpoints(obj: Object, _context: Context) -> None:
    for _, subset in each_at(obj, "", "subsets"):
        for _, port in each_at(subset, "", "ports"):
            set_default(port, "protocol", "TCP")


SERVICE_ACCOUNT: Final = Rules()
RESOURCE_QUOTA: Final = Rules(checks=check_quota, update_checks=check_quota_update)
LIMIT_RANGE: Final = Rules(defaults=_default_limits, checks=check_limit_range)
ENDPOINTS: Final = Rules(defaults=_default_endpoints)
