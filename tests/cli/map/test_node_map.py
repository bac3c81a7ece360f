"""The map of one node: boxes, holders and distances."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from cli.top.readings import claim, reading
from drayman.api.meta import ObjectMeta
from drayman.api.resource import (
    Device,
    DeviceAttribute,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from drayman.cli.map.boxes import NodeDrawing
from drayman.cli.map.distances import DistanceDrawing
from drayman.questions.devices.reading import Reading, reading_of

TRAIN = claim("train", "gpu.nvidia.com/dgx-h100-0/gpu-0", "dra.net/dgx-h100-0/pci-0000-18-00-0")


def drawn(found: Reading, width: int = 80, picture: type[Any] = NodeDrawing) -> list[str]:
    out = Console(file=StringIO(), width=width)
    text: str = picture(found, found.nodes[0]).plain(out)
    return text.splitlines()


def boxes_around(text: str, shown: list[str]) -> list[str]:
    """The titles of the boxes that a line is in, from the outside in."""
    open_: list[str] = []
    for line in shown:
        if text in line:
            return open_
        if "╭─" in line:
            open_.append(line.split("╭─ ")[1].split(" ─")[0])
        elif "╰" in line:
            open_.pop()
    raise AssertionError(f"{text!r} is not shown")


def test_a_device_is_in_its_root_its_numa_node_and_its_package() -> None:
    """From the outside in; its holder stands beside it."""
    shown = drawn(reading("dgx-h100=1", [TRAIN]))
    assert boxes_around("gpu-5 ", shown) == ["package 1", "NUMA node 1", "pci0000:b7"]
    (line,) = [line for line in shown if "gpu-0 " in line]
    assert line.strip("│ ").split() == ["gpu-0", "used", "team/train"]


@pytest.mark.parametrize("profile", ["dgx-h100", "dgx-h100-mig"])
def test_a_node_that_takes_no_pods_says_so(profile: str) -> None:
    """In the heading, and beside each device that would be free."""
    found = reading(f"{profile}=1", cordoned=[f"{profile}-0"])
    shown = drawn(found)
    assert "takes no pods: cordoned" in shown[1:3]
    (line,) = [line for line in shown if " gpu-1 " in line]
    assert line.strip("│ ").split(maxsplit=2) == ["gpu-1", "unavailable", "its node is cordoned"]
    data = NodeDrawing(found, found.nodes[0]).data()
    assert data["closed"] == ["cordoned"]
    assert {d["state"] for d in data["devices"]} == {"unavailable"}


def test_partitions_are_inside_their_gpu() -> None:
    """Those that are held one by one, the rest by profile; a free GPU is one line."""
    part = claim("nb", "gpu.nvidia.com/dgx-h100-mig-0/gpu-0-mig-3g40gb-9-4")
    shown = drawn(reading("dgx-h100-mig=1", [part]))
    assert boxes_around("team/nb", shown)[-1] == "gpu gpu-0: partitioned"
    assert any("free: " in line and "1g.10gb x4" in line for line in shown)
    (free,) = [line.strip("│ ").split() for line in shown if " gpu-1 " in line]
    assert free == ["gpu-1", "free", "or", "in", "parts"]


def test_shares_say_how_much_is_taken() -> None:
    """The device says the sum, each holder its part."""
    device = "gpu.example.com/example-shared-0/gpu-0"
    claims = [
        claim(name, device, share=name, memory="24Gi", compute="30") for name in ("one", "two")
    ]
    shown = drawn(reading("example-shared=1", claims))
    at = next(n for n, line in enumerate(shown) if "gpu-0 " in line)
    assert "memory 48Gi/80Gi" in shown[at]
    assert "team/one  memory 24Gi, compute 30" in shown[at + 1]
    assert "team/two" in shown[at + 2]


def test_what_is_not_published_is_not_made_up() -> None:
    """Devices without a place stand by themselves, in no package."""
    shown = drawn(reading("example=1"))
    assert boxes_around("gpu-0 ", shown) == ["place not published"]


def with_attribute(name: str, value: str) -> Reading:
    """A node with one device that has one attribute."""
    device = Device(name="gpu-0", attributes={name: DeviceAttribute(string=value)})
    spec = ResourceSliceSpec(
        driver="gpu.example.com",
        pool=ResourcePool(name="p", generation=1, resource_slice_count=1),
        node_name="cpu-0",
        devices=(device,),
    )
    made = ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec)
    return reading_of(reading("cpu=1").nodes, [made], [])


@pytest.mark.parametrize("name", ["resource.kubernetes.io/pcieRoot", "oke.dra.net/rackId"])
def test_names_that_drivers_choose_are_text(name: str) -> None:
    """Neither markup nor control sequences in an attribute reach the terminal as such."""
    shown = "\n".join(drawn(with_attribute(name, "[red]pci\x1b[2J[/]")))
    assert "[red]pci\\x1b[2J[/]" in shown
    assert "\x1b" not in shown


def test_devices_may_say_where_the_node_is() -> None:
    """Where no label does; the machine-readable map has it by the name of the attribute."""
    found = with_attribute("oke.dra.net/rackId", "r7")
    assert "  rack r7" in drawn(found)[0]
    assert NodeDrawing(found, found.nodes[0]).data()["levels"]["oke.dra.net/rackId"] == "r7"


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("profile", ["dgx-h100-mig", "gb200-nvl72", "mi300x-cpx", "dgx-a100-mig"])
def test_every_line_fits(profile: str, width: int) -> None:
    """Boxes are as wide as the terminal; so is the matrix, in panels."""
    found = reading(f"{profile}=1")
    for picture in (NodeDrawing, DistanceDrawing):
        assert max(map(len, drawn(found, width, picture))) <= width


def test_a_wide_terminal_has_packages_side_by_side() -> None:
    """So that the whole node fits on a screen."""
    found = reading("dgx-h100=1")
    (line,) = [line for line in drawn(found, 200) if "package 0" in line]
    assert "package 1" in line


def test_the_matrix_has_codes_and_holders() -> None:
    """A GPU is nearest to the card on its root; what one pod has is marked and bracketed."""
    found = reading("dgx-h100=1", [TRAIN])
    shown = drawn(found, picture=DistanceDrawing)
    assert shown[1].split()[:4] == ["1", "GPU0", "X", "NV18"]
    (near,) = [line for line in shown if line.startswith("1 NIC0") and "[PXB]" in line]
    assert near.split()[2] == "[PXB]"
    assert "  1  team/train" in shown
    rows = DistanceDrawing(found, found.nodes[0]).data()["rows"]  # type: ignore[call-overload]
    assert rows[0]["holders"] == ["team/train"]
    assert rows[8]["links"][0] == "PXB"


def test_a_divided_gpu_is_one_row_of_the_matrix() -> None:
    """Eight GPUs and eight cards, whatever the GPUs are offered as."""
    found = reading("dgx-h100-mig=1")
    rows = DistanceDrawing(found, found.nodes[0]).data()["rows"]  # type: ignore[call-overload]
    assert [row["name"] for row in rows[6:10]] == ["GPU6", "GPU7", "NIC0", "NIC1"]
    assert len(rows) == 16


def test_a_node_without_devices_says_so() -> None:
    """In both ways of looking at it."""
    found = reading_of(reading("cpu=1").nodes, [], [])
    assert drawn(found)[-1] == "no devices"
    assert "no devices" in drawn(found, picture=DistanceDrawing)[0]
