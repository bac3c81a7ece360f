"""What rows say about claims and devices."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from cli.top.readings import claim, reading
from drayman.api.codec import to_dict
from drayman.api.core import Node
from drayman.api.meta import ObjectMeta
from drayman.api.resource import (
    Device,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from drayman.cli.table import Table
from drayman.cli.top.rows import (
    CLAIM_COLUMNS,
    DEVICE_COLUMNS,
    claim_cells,
    device_holder,
    device_state,
)
from drayman.questions.devices.claim_rows import MANY_NODES, claim_row
from drayman.questions.devices.ordering import sorted_devices, sorted_pools
from drayman.questions.devices.reading import reading_of
from drayman.questions.devices.rows import device_rows, pool_rows

GPU = "gpu.nvidia.com/dgx-h100-0/gpu-0"
OTHER = "gpu.nvidia.com/dgx-h100-1/gpu-0"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODE = Node(metadata=ObjectMeta(name="n"))


def published(driver: str) -> ResourceSlice:
    """A slice of a driver whose pool `n` has the device `d0`."""
    pool = ResourcePool(name="n", generation=1, resource_slice_count=1)
    spec = ResourceSliceSpec(driver=driver, pool=pool, node_name="n", devices=(Device(name="d0"),))
    return ResourceSlice(metadata=ObjectMeta(name=f"n-{driver}"), spec=spec)


def test_a_claim_is_where_its_devices_are() -> None:
    """One node, several, or none where its devices are no longer published."""
    found = reading("dgx-h100=2")
    assert claim_row(claim("a", GPU), found).node == "dgx-h100-0"
    assert claim_row(claim("a", GPU, OTHER), found).node == MANY_NODES
    assert claim_row(claim("a", "gpu.nvidia.com/gone/gpu-0"), found).node is None


def test_the_state_of_a_claim_is_what_kubectl_says() -> None:
    """In the table one word stands for it."""
    reserved = claim("a", GPU)
    allocated = replace(reserved, status=replace(reserved.status, reserved_for=()))
    pending = replace(reserved, status=ResourceClaimStatus())
    deleted = replace(
        reserved, metadata=replace(reserved.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )
    rows = [
        claim_row(each, reading("dgx-h100=1")) for each in (reserved, allocated, pending, deleted)
    ]
    assert [row.state for row in rows] == [
        "allocated,reserved",
        "allocated",
        "pending",
        "deleted,allocated,reserved",
    ]
    assert [claim_cells(row, NOW)[2][0] for row in rows] == [
        "reserved",
        "allocated",
        "pending",
        "deleted",
    ]


def test_rows_say_what_is_wrong_with_the_node_and_the_devices() -> None:
    """After the state: that the node takes no pods, that devices of a claim are not published any more."""
    held = claim("a", "gpu.nvidia.com/dgx-h100-0/gpu-0", "gpu.nvidia.com/dgx-h100-0/gpu-99")
    found = reading("dgx-h100=1", [held], cordoned=["dgx-h100-0"])
    row = claim_row(held, found)
    assert claim_cells(row, NOW)[2] == ("reserved,cordoned,devices-gone", "red")
    gone = ["gpu.nvidia.com/dgx-h100-0/gpu-99"]
    data = to_dict(row)
    assert (data["devicesGone"], data["nodeClosed"]) == (gone, ["cordoned"])
    used, free = [r for r in device_rows(found) if r.device in ("gpu-0", "gpu-1")]
    assert (device_state(used), device_state(free)) == ("used,cordoned", "unavailable,cordoned")
    assert to_dict(free)["reason"] == "its node is cordoned"


def test_a_claim_without_pods_holds_by_itself() -> None:
    """Then the claim is named, and said to be one."""
    idle = claim("a", GPU)
    idle = replace(idle, status=replace(idle.status, reserved_for=()))
    found = reading("dgx-h100=1", [idle])
    (row,) = [row for row in device_rows(found) if row.holders]
    assert device_holder(row) == "team/a-claim (claim)"


def test_drivers_may_use_the_same_names() -> None:
    """Each device has its own holder, and a claim names its devices with driver and pool."""
    mine, other = "gpu.nvidia.com/n/d0", "dra.net/n/d0"
    held = claim("a", mine)
    found = reading_of([NODE], [published("gpu.nvidia.com"), published("dra.net")], [held])
    holders = {
        f"{row.driver}/{row.pool}/{row.device}": device_holder(row) for row in device_rows(found)
    }
    assert holders == {mine: "team/a", other: "-"}
    assert to_dict(claim_row(claim("b", mine, other), found))["devices"] == [mine, other]


def test_devices_sort_by_what_is_asked_for() -> None:
    """Ties stay in the order of nodes, which is that of people, and of slices."""
    found = reading("dgx-h100=11", [claim("a", OTHER)])
    rows = device_rows(found)
    nodes = list(dict.fromkeys(row.node for row in sorted_devices(rows, "node")))
    assert nodes == [f"dgx-h100-{n}" for n in range(11)]
    assert sorted_devices(rows, "state")[0].holders == ("team/a",)
    assert sorted_devices(rows, "holder")[0].holders == ("team/a",)
    assert sorted_devices(rows, "driver")[0].driver == "compute-domain.nvidia.com"


def test_the_holders_of_a_shared_device_are_whole_on_a_terminal() -> None:
    """Each is named in one piece; of a claim, the pods that its row names."""
    pods = [f"default/serve-{each}" for each in "abcd"]
    row = ("example-shared-0", "gpu.example.com", "-", "gpu-0", "gpu", "shared", ",".join(pods))
    shown = Table(DEVICE_COLUMNS, [(*row, "memory 20Gi/40Gi")]).text(80).plain
    assert set(pods) <= set(shown.replace(",", " ").split())
    listed = f"{','.join(pods[:3])},+1"
    claimed = ("default", "shared", "reserved", "example-shared-0", "1", listed, "2m11s", "gpu-0")
    shown = Table(CLAIM_COLUMNS, [claimed]).text(80).plain
    assert {*pods[:3], "+1"} <= set(shown.replace(",", " ").split())


def test_pools_sort_by_what_they_have_most_of() -> None:
    """The pool with a used device first, or the one with most devices."""
    rows = pool_rows(reading("dgx-h100=2,dgx-h100-mig=1", [claim("a", OTHER)]))
    assert sorted_pools(rows, "used")[0].pool == "dgx-h100-1"
    assert sorted_pools(rows, "total")[0].pool == "dgx-h100-mig-0"
    first = sorted_pools(rows, "name")[0]
    assert (first.driver, first.pool) == ("compute-domain.nvidia.com", "dgx-h100-0")


def test_devices_and_claims_can_be_told_apart_on_a_terminal() -> None:
    """In 80 columns only drivers are cut: names that people look for and type are whole, in the row or below it."""
    names = [f"pci-0000-{bus}-00-0" for bus in ("40", "c0", "4f", "ce", "5e")]
    pod, left = "default/trainer-6f4657ddd8-jbjsc", "egressBandwidth 100/100"
    devices = [
        ("dgx-h100-mig-0", "compute-domain.nvidia.com", "-", name, "nic", "unavailable", pod, left)
        for name in names
    ]
    shown = Table(DEVICE_COLUMNS, devices).text(80).plain
    assert [line.split()[2] for line in shown.splitlines()[1::2]] == names
    assert shown.count(f"    holder: {pod}\n") == len(names) - 1
    assert shown.count("dgx-h100-mig-0  ") == len(names)
    names = [f"serve-{each}-gpu-q7p5d" for each in "abc"]
    claims = [
        ("default", name, "reserved", "dgx-h100-mig-0", "4", pod, "2m11s", name) for name in names
    ]
    shown = Table(CLAIM_COLUMNS, claims).text(80).plain
    assert [line.split()[1] for line in shown.splitlines()[1::2]] == names
    assert shown.count(f"    pods: {pod}") == len(names)
