"""How what drivers report about the devices of a claim is put together with what is known."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from drayman.api.meta import Condition
from drayman.api.resource import AllocatedDeviceStatus


def with_statuses(
    known: Iterable[AllocatedDeviceStatus], reported: Iterable[AllocatedDeviceStatus], now: str
) -> tuple[AllocatedDeviceStatus, ...]:
    """The devices of a claim's status after a report. What it does not mention is kept."""
    found = {(each.driver, each.pool, each.device, each.share_id): each for each in known}
    for report in reported:
        key = (report.driver, report.pool, report.device, report.share_id)
        before = found.get(key, AllocatedDeviceStatus())
        found[key] = replace(
            report,
            conditions=_conditions(before.conditions, report.conditions, now),
            data=before.data if report.data is None else report.data,
            network_data=report.network_data or before.network_data,
        )
    return tuple(found.values())


def _conditions(
    known: tuple[Condition, ...], reported: tuple[Condition, ...], now: str
) -> tuple[Condition, ...]:
    """The time of a condition changes only with its status."""
    found = {condition.type_: condition for condition in known}
    for condition in reported:
        before = found.get(condition.type_)
        same = before is not None and before.status == condition.status
        since = before.last_transition_time if before is not None and same else now
        found[condition.type_] = replace(condition, last_transition_time=since)
    return tuple(found.values())
