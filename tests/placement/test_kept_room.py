"""Room that somebody asks the scheduler to keep: what a condition says, and what it does not."""

from __future__ import annotations

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.quantity import Quantity
from drayman.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from drayman.inventory.identity import DeviceId
from drayman.placement.kept_room import (
    CONDITION,
    LONGEST_S,
    KeptRoom,
    condition_of,
    is_over,
    kept_room_of,
)

DEVICES = (DeviceId("gpu.example.com", "a", "gpu-0"), DeviceId("gpu.example.com", "a", "gpu-1"))


def saying(**condition: str) -> Pod:
    made = {"type": CONDITION, "status": "True", **condition}
    return convert(Pod, {"metadata": {"name": "p"}, "status": {"conditions": [made]}})


def test_what_is_asked_for_is_read() -> None:
    """A condition that was made here is read as it was meant, and begins with a sentence for people."""
    kept = KeptRoom.of("a", DEVICES, 1_900_000_000.0)
    condition = condition_of(kept, 1_800_000_000.0)
    pod = convert(Pod, {"metadata": {"name": "p"}, "status": {"conditions": [condition]}})
    assert kept_room_of(pod) == kept
    assert str(condition["message"]).startswith("Room on node a and 2 of its devices are kept")
    (allocation,) = kept.allocations
    assert tuple(map(DeviceId.of, allocation.devices.results)) == DEVICES
    assert (is_over(kept, kept.until - 1), is_over(kept, kept.until)) == (False, True)


def test_a_part_of_a_shared_device_is_kept_as_a_part() -> None:
    """What is kept of a device that several claims share says how much of it, and leaves the rest to others."""
    share = DeviceRequestAllocationResult(
        driver="gpu.example.com",
        pool="a",
        device="gpu-0",
        share_id="s",
        consumed_capacity={"memory": Quantity(2)},
    )
    seen = DeviceRequestAllocationResult(driver="d", pool="a", device="x", admin_access=True)
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(share, seen)))
    kept = KeptRoom.for_allocations("a", (allocation,), 1_900_000_000.0)
    condition = condition_of(kept, 1_800_000_000.0)
    pod = convert(Pod, {"metadata": {"name": "p"}, "status": {"conditions": [condition]}})
    assert kept_room_of(pod) == kept
    (read,) = kept.allocations
    (result,) = read.devices.results
    assert (result.share_id, result.consumed_capacity) == ("s", {"memory": Quantity(2)})


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(Pod(), id="no condition"),
        pytest.param(saying(message="nothing"), id="no record"),
        pytest.param(saying(message='x\n{"node": 1}'), id="a record of another form"),
        pytest.param(saying(status="False", message='x\n{"node":"a","until":1}'), id="not so"),
    ],
)
def test_what_cannot_be_read_says_nothing(pod: Pod) -> None:
    """Nothing is kept by a condition that does not say what."""
    assert kept_room_of(pod) is None


def test_nobody_gets_room_for_as_long_as_he_likes() -> None:
    """A time that is far ahead, or no time at all, keeps nothing: whoever asks extends it while it is needed."""
    now = 1_800_000_000
    for until, over in ((now + int(LONGEST_S), False), (now + int(LONGEST_S) + 1, True)):
        assert is_over(KeptRoom(node="a", until=until), now) is over
    assert is_over(KeptRoom(node="a", until=10**400), now)
