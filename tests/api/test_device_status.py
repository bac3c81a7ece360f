"""Reports about devices are put together with what is known of them."""

from __future__ import annotations

from drayman.api.device_status import with_statuses
from drayman.api.meta import Condition
from drayman.api.resource import AllocatedDeviceStatus, NetworkDeviceData

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def status(device: str = "d", *, since: str | None = None, ready: str = "True", **fields) -> AllocatedDeviceStatus:  # fmt: skip
    condition = Condition(type_="Ready", status=ready, last_transition_time=since)
    return AllocatedDeviceStatus(
        driver="x", pool="p", device=device, conditions=(condition,), **fields
    )


def times(found: tuple[AllocatedDeviceStatus, ...]) -> list[tuple[str, str | None]]:
    return [(c.type_, c.last_transition_time) for each in found for c in each.conditions]


def test_a_condition_is_as_old_as_its_status() -> None:
    """The same again changes nothing; another status begins now."""
    known = (status(since=THEN),)
    assert with_statuses(known, [status()], NOW) == known
    assert times(with_statuses(known, [status(ready="False")], NOW)) == [("Ready", NOW)]
    assert times(with_statuses((), [status()], NOW)) == [("Ready", NOW)]


def test_what_a_report_does_not_mention_is_kept() -> None:
    """Other devices, other conditions, data and network."""
    other = status("other", since=THEN)
    network = NetworkDeviceData(interface_name="net1")
    known = (other, status(since=THEN, data={"a": 1}, network_data=network))
    reported = AllocatedDeviceStatus(
        driver="x", pool="p", device="d", conditions=(Condition(type_="Up", status="True"),)
    )
    found = with_statuses(known, [reported], NOW)
    assert found[0] == other
    assert (found[1].data, found[1].network_data) == ({"a": 1}, network)
    assert times(found[1:]) == [("Ready", THEN), ("Up", NOW)]


def test_shares_of_a_device_are_told_apart() -> None:
    """Each has a status of its own."""
    known = (status(since=THEN, share_id="s1"),)
    found = with_statuses(known, [status(share_id="s2", ready="False")], NOW)
    assert [(each.share_id, each.conditions[0].status) for each in found] == [
        ("s1", "True"),
        ("s2", "False"),
    ]
