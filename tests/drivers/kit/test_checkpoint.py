"""Records of prepared claims: what is written is read again, what is damaged says so, and what is from before a boot is dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.resource import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceCapacity,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from drayman.drivers.kit.checkpoint import Checkpoint, Record
from drayman.drivers.kit.errors import CheckpointError
from drayman.plugins.cdi import CdiDevice, ContainerEdits, Spec
from drayman.plugins.model import Ready, ReadyDevice

UID = "0d1a0f6e-0000-4000-8000-000000000001"


def record(uid: str = UID, device: str = "d0", *, boot: str = "b", **result) -> Record:
    found = DeviceRequestAllocationResult(
        request="r", driver="x", pool="p", device=device, **result
    )
    status = ResourceClaimStatus(
        allocation=AllocationResult(devices=DeviceAllocationResult(results=(found,)))
    )
    return Record(
        driver="x",
        boot_id=boot,
        stage="completed",
        claim=ResourceClaim(metadata=ObjectMeta(name="c", namespace="n", uid=uid), status=status),
        devices={device: Device(name=device, capacity={"m": DeviceCapacity(value=Quantity.parse("1Gi"))})},
        state={"any": ["thing"]},
        answer=Ready((ReadyDevice(("r",), "p", device, ("v/c=a",), None),)),
        spec=Spec(kind="v/c", devices=(CdiDevice(name="a", container_edits=ContainerEdits(env=("A=1",))),)),
    )  # fmt: skip


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """By the process that wrote it, and by the next one."""
    first = Checkpoint(tmp_path, "b")
    first.load()
    first.write(record())
    for checkpoint in (first, Checkpoint(tmp_path, "b")):
        assert checkpoint.load() == []
        assert checkpoint.read(UID) == record()
        assert checkpoint.holder(("p", "d0")) == UID
        assert len(checkpoint) == 1
    first.remove(UID)
    first.remove(UID)
    assert (first.read(UID), first.holder(("p", "d0")), list(tmp_path.iterdir())) == (
        None,
        None,
        [],
    )


def test_shares_and_looks_hold_nothing(tmp_path: Path) -> None:
    """Others may have the device too."""
    checkpoint = Checkpoint(tmp_path, "b")
    checkpoint.load()
    checkpoint.write(record(share_id="s"))
    checkpoint.write(record(UID[:-1] + "2", admin_access=True))
    assert checkpoint.holder(("p", "d0")) is None
    assert len(checkpoint) == 2


def test_another_instance_is_seen_at_the_next_look(tmp_path: Path) -> None:
    """What it has taken, and what it has given back."""
    one, other = Checkpoint(tmp_path, "b"), Checkpoint(tmp_path, "b")
    one.load()
    other.load()
    one.write(record())
    assert other.holder(("p", "d0")) is None
    other.look()
    assert other.holder(("p", "d0")) == UID
    one.remove(UID)
    other.look()
    assert other.holder(("p", "d0")) is None


def test_records_from_before_the_boot_are_dropped(tmp_path: Path) -> None:
    """The state of the devices has gone with it."""
    before = Checkpoint(tmp_path, "old")
    before.load()
    before.write(record(boot="old"))
    after = Checkpoint(tmp_path, "new")
    assert [each.uid for each in after.load()] == [UID]
    assert (len(after), list(tmp_path.iterdir())) == (0, [])


DAMAGES = {
    "a byte changed": (lambda text: text.replace(b'"pool":"p"', b'"pool":"q"'), "its checksum is wrong"),
    "cut off": (lambda text: text[:-20], "is damaged"),
    "empty": (lambda text: b"", "is damaged"),
    "a newer version": (lambda text: text.replace(b'"version":1', b'"version":2'), "written by another version of the kit"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_record_is_an_error_with_what_to_do(name: str, tmp_path: Path) -> None:
    """It is not ignored: its device may be in use."""
    damage, problem = DAMAGES[name]
    checkpoint = Checkpoint(tmp_path, "b")
    checkpoint.load()
    checkpoint.write(record())
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=problem) as caught:
        Checkpoint(tmp_path, "b").load()
    assert str(path) in str(caught.value)
    assert "remove the file" in str(caught.value)


@pytest.mark.parametrize("uid", ["", "../x", "a/b", ".hidden", "x" * 200])
def test_an_id_that_cannot_name_a_file_is_unknown(uid: str, tmp_path: Path) -> None:
    """It cannot reach outside of the folder either."""
    checkpoint = Checkpoint(tmp_path, "b")
    checkpoint.load()
    assert checkpoint.read(uid) is None
    with pytest.raises(CheckpointError, match="is no uid"):
        checkpoint.write(record(uid))
