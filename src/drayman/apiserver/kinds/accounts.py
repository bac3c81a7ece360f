"""Small core kinds: service accounts, quotas, limit ranges and endpoints."""

from __future__ import annotations

from typing import Final

from drayman.api.validation.field_errors import invalid
from drayman.apiserver.kinds.checks import NOT_NEGATIVE
from drayman.apiserver.kinds.reading import each_at, map_at, member, set_default
from drayman.apiserver.kinds.rules import Errors, Rules
from drayman.apiserver.strategy import Context, Object


def _default_limits(obj: Object, _context: Context) -> None:
    """Of containers, what is missing follows from what is there: a limit from the maximum, a request from the limit."""
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


def _check_quota(obj: Object, _context: Context) -> Errors:
    for name, amount in map_at(obj, "spec", "hard").items():
        if str(amount).startswith("-"):
            yield invalid(f"spec.hard[{name}]", str(amount), NOT_NEGATIVE)


def _default_endpoints(obj: Object, _context: Context) -> None:
    for _, subset in each_at(obj, "", "subsets"):
        for _, port in each_at(subset, "", "ports"):
            set_default(port, "protocol", "TCP")


SERVICE_ACCOUNT: Final = Rules()
RESOURCE_QUOTA: Final = Rules(checks=_check_quota)
LIMIT_RANGE: Final = Rules(defaults=_default_limits)
ENDPOINTS: Final = Rules(defaults=_default_endpoints)
