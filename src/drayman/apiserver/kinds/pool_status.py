"""ResourcePoolStatusRequest: a one-time query for how many devices of a pool are in use, answered in its status."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from drayman.api import formats
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    duplicate,
    invalid,
    invalid_each,
    required,
    too_long,
    too_many,
)
from drayman.api.validation.metadata import IMMUTABLE
from drayman.api.validation.names import POOL_LENGTH
from drayman.apiserver.kinds.checks import status_conditions
from drayman.apiserver.kinds.pods.table import has_condition
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, member, text_at
from drayman.apiserver.kinds.rules import BareStatusRules, Errors, Rules
from drayman.apiserver.kinds.tables import NONE, age_of
from drayman.apiserver.served.strategy import Context, Object

DEFAULT_LIMIT: Final = 100
MOST_POOLS: Final = 1000
MOST_CONDITIONS: Final = 10
LONGEST_PROBLEM: Final = 256
_COUNTS: Final = (
    ("resourceSliceCount", 1),
    ("totalDevices", 0),
    ("allocatedDevices", 0),
    ("availableDevices", 0),
    ("unavailableDevices", 0),
)


def _default(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    if spec.get("limit") is None:
        spec["limit"] = DEFAULT_LIMIT


def _driver(name: str, path: str) -> Errors:
    """A DNS subdomain in upper or lower case. Its length is not limited further, unlike elsewhere."""
    if not name:
        yield required(path)
        return
    yield from invalid_each(path, name, formats.caseless_long_name_problems(name))


def _pool_name(name: str, path: str) -> Errors:
    if formats.byte_length(name) > POOL_LENGTH:
        yield too_long(path, POOL_LENGTH)
    for index, part in enumerate(name.split("/")):
        if not part:
            yield invalid(path, name, f"segment {index}: must not be empty")
            continue
        for problem in formats.long_name_problems(part):
            yield invalid(path, part, f"segment {index}: {problem}")


def _at_least(value: Json, least: int, path: str) -> Errors:
    if value is not None and value < least:
        yield invalid(path, value, f"must be greater than or equal to {least}")


def _check(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    yield from _driver(text_at(spec, "driver"), "spec.driver")
    if spec.get("poolName") is not None:
        yield from _pool_name(spec["poolName"], "spec.poolName")
    limit = spec.get("limit")
    yield from _at_least(limit, 1, "spec.limit")
    if limit is not None and limit > MOST_POOLS:
        yield invalid("spec.limit", limit, f"must be less than or equal to {MOST_POOLS}")


def _check_update(new: Object, old: Object, _context: Context) -> Errors:
    if new.get("spec") != old.get("spec"):
        # As upstream, the message does not show the value.
        yield invalid("spec", None, IMMUTABLE)


def _check_status(new: Object, old: Object, _context: Context) -> Errors:
    status, before = new.get("status"), old.get("status")
    if before is not None and status != before:
        # An answer is final.
        yield invalid("status", _go_status(status), IMMUTABLE)
    if status is None or status == before:
        return
    yield from _declared(status, before or {})
    if before is None:
        yield from status_conditions(new)


def _declared(status: Object, before: Object) -> Errors:
    """The declared rules of the fields. Unchanged fields are not checked again."""
    if status.get("poolCount") is None:
        yield required("status.poolCount")
    elif status["poolCount"] != before.get("poolCount"):
        yield from _at_least(status["poolCount"], 0, "status.poolCount")
    pools, conditions = items_at(status, "pools"), items_at(status, "conditions")
    if len(pools) > MOST_POOLS:
        yield too_many("status.pools", len(pools), MOST_POOLS)
    elif pools != items_at(before, "pools"):
        for where, pool in each_at(status, "status", "pools"):
            yield from _pool(pool, where)
    if len(conditions) > MOST_CONDITIONS:
        yield too_many("status.conditions", len(conditions), MOST_CONDITIONS)
    else:
        kinds = [text_at(condition, "type") for condition in conditions]
        for index, kind in enumerate(kinds):
            if kind in kinds[:index]:
                yield duplicate(f"status.conditions[{index}]", kind)


def _go_status(status: Json) -> Json:
    """The value as messages of the real server show it."""
    if status is None:
        return None
    names = ("poolCount", "pools", "conditions")
    return {f"{name[0].upper()}{name[1:]}": status.get(name) for name in names}


def _pool(pool: Object, path: str) -> Errors:
    yield from _driver(text_at(pool, "driver"), f"{path}.driver")
    if name := text_at(pool, "poolName"):
        yield from _pool_name(name, f"{path}.poolName")
    else:
        yield required(f"{path}.poolName")
    # A generation of zero cannot be distinguished from a missing one.
    if pool.get("generation"):
        yield from _at_least(pool["generation"], 0, f"{path}.generation")
    else:
        yield required(f"{path}.generation")
    for count, least in _COUNTS:
        yield from _at_least(pool.get(count), least, f"{path}.{count}")
    problem = text_at(pool, "validationError")
    if formats.byte_length(problem) > LONGEST_PROBLEM:
        yield too_long(f"{path}.validationError", LONGEST_PROBLEM)
    if (node := pool.get("nodeName")) is not None:
        yield from invalid_each(f"{path}.nodeName", node, formats.long_name_problems(node))


def status_of(obj: Object, _now: datetime) -> str:
    if has_condition(obj, "Complete"):
        shown, total = len(items_at(obj, "status", "pools")), at(obj, "status", "poolCount") or 0
        return f"Complete ({shown}/{total} pools)" if total > shown else "Complete"
    return "Failed" if has_condition(obj, "Failed") else "Pending"


def completed(obj: Object, now: datetime) -> str:
    for condition in items_at(obj, "status", "conditions"):
        if text_at(condition, "type") == "Complete" and text_at(condition, "status") == "True":
            return age_of(condition.get("lastTransitionTime"), now)
    return NONE


def total_of(obj: Object, name: str) -> str:
    """A number of devices summed over all pools, a dash where there is no answer."""
    if obj.get("status") is None or has_condition(obj, "Failed"):
        return "-"
    return str(sum(pool.get(name) or 0 for pool in items_at(obj, "status", "pools")))


def problem_count(obj: Object) -> str:
    if obj.get("status") is None or has_condition(obj, "Failed"):
        return "-"
    return str(sum("validationError" in pool for pool in items_at(obj, "status", "pools")))


REQUEST: Final = Rules(
    namespaced=False,
    defaults=_default,
    checks=_check,
    update_checks=_check_update,
    rechecks=False,
)
STATUS: Final = BareStatusRules(defaults=_default, update_checks=_check_status)
