"""The map of all nodes: places, numbers, and lines that fit."""

from __future__ import annotations

import json
from io import BytesIO, StringIO, TextIOWrapper

import pytest
import yaml
from msgspec.structs import replace
from rich.console import Console

from cli.top.readings import claim, reading
from drayman.cli.map.boxes import NodeDrawing
from drayman.cli.map.overview import Overview
from drayman.cli.top.command import Listing
from drayman.cli.top.rows import DEVICE_COLUMNS, device_cells
from drayman.questions.devices.reading import Reading, reading_of
from drayman.questions.devices.rows import device_rows

HELD = claim("train", *(f"gpu.nvidia.com/dgx-h100-5/gpu-{n}" for n in range(8)))


def lines(found: Reading, width: int = 80, **options: object) -> list[str]:
    out = Console(file=StringIO(), width=width)
    return Overview(found, **options).plain(out).splitlines()  # type: ignore[arg-type]


def line_of(name: str, shown: list[str]) -> list[str]:
    (found,) = [line for line in shown if line.split()[:1] == [name]]
    return found.split()


def test_racks_are_lines_under_their_block() -> None:
    """Twenty nodes are five racks of one block; numbers of the racks add up to those of the block."""
    shown = lines(reading("dgx-h100=20", [HELD]))
    assert shown[0] == "20 nodes, 5 racks"
    assert line_of("dgx-h100-block-0", shown)[-3:] == ["8", "152", "160"]
    assert line_of("dgx-h100-rack-1", shown)[-3:] == ["8", "24", "32"]
    assert line_of("dgx-h100-rack-0", shown)[-3:] == ["0", "32", "32"]
    assert not any("dgx-h100-5" in line for line in shown)


def test_without_devices_there_is_nothing_to_draw() -> None:
    """Neither bars nor a legend, nor empty lines in their place."""
    assert lines(reading_of((), (), ())) == ["0 nodes, 0 racks", "no devices"]


def test_few_nodes_are_shown_one_by_one() -> None:
    """Others are with --nodes."""
    assert line_of("dgx-h100-1", lines(reading("dgx-h100=2")))[-1] == "8"
    many = reading("dgx-h100=20", [HELD])
    assert line_of("dgx-h100-5", lines(many, unfold=True))[-3:] == ["8", "0", "8"]


def test_what_is_most_used_can_come_first() -> None:
    """Blocks and racks are in the order of their names, or of how many devices are used or free."""
    many = reading("dgx-h100=20", [HELD])

    def racks(order: str) -> list[str]:
        return [w for line in lines(many, order=order) for w in line.split() if "-rack-" in w]

    names = [f"dgx-h100-rack-{n}" for n in range(5)]
    assert racks("name") == names
    assert racks("used") == [names[1], names[0], *names[2:]]
    assert racks("free") == [names[0], *names[2:], names[1]]


@pytest.mark.parametrize("width", [80, 200])
def test_nodes_that_take_no_pods_are_marked(width: int) -> None:
    """Their devices are not free, and the line says why; racks and the heading count such nodes."""
    found = reading("dgx-h100=3", cordoned=["dgx-h100-1"])
    shown = lines(found, width)
    assert shown[0] == "3 nodes, 1 rack, 1 cordoned"
    assert line_of("dgx-h100-1", shown)[-5:] == ["0", "8", "0", "8", "cordoned"]
    assert line_of("dgx-h100-0", shown)[-4:] == ["0", "0", "8", "8"]
    assert line_of("dgx-h100-rack-0", shown)[-2:] == ["1", "cordoned"]
    assert "- unavailable" in shown[-1]
    assert max(map(len, shown)) <= width
    (rack,) = Overview(found).data()["racks"]  # type: ignore[call-overload]
    assert [node.get("closed") for node in rack["nodes"]] == [None, ["cordoned"], None]
    assert rack["nodes"][1]["devices"]["gpu"] == {"total": 8, "unavailable": 8}


def test_a_partitioned_gpu_is_one_gpu_in_part() -> None:
    """A node with 208 devices for its GPUs has eight of them."""
    part = claim("notebook", "gpu.nvidia.com/dgx-h100-mig-0/gpu-0-mig-1g10gb-19-0")
    shown = lines(reading("dgx-h100-mig=1", [part]))
    assert shown[1].endswith("1 in part, 7 free of 8")


def test_an_nvlink_domain_is_named() -> None:
    """The eighteen trays of a rack are one domain."""
    found = reading("gb200-nvl72=1")
    shown = lines(found)
    assert shown[0] == "18 nodes, 1 rack, 1 NVLink domain"
    (rack,) = Overview(found).data()["racks"]  # type: ignore[call-overload]
    assert line_of("gb200-nvl72-rack-0", shown)[1] == rack["nvlinkDomain"][:8]
    assert len(rack["nodes"]) == 18


def test_another_kind_can_be_asked_for() -> None:
    """Nodes that have none of it are counted in words."""
    shown = lines(reading("dgx-h100=1,cpu=2"), kind="nic")
    assert line_of("dgx-h100-rack-0", shown)[-1] == "8"
    assert "2 nodes have no nic" in shown


@pytest.mark.parametrize("width", [80, 200])
def test_every_line_fits(width: int) -> None:
    """Also with long names and every column."""
    found = reading("dgx-h100=3,gb200-nvl72=1,mi300x-cpx-nps4=1", [HELD])
    named = [
        replace(n, metadata=replace(n.metadata, name=f"{n.metadata.name}.rack.example.com"))
        for n in found.nodes
    ]
    for each in (found, reading_of(named, [], [])):
        assert max(map(len, lines(each, width, unfold=True))) <= width


def test_without_labels_and_devices_there_is_still_a_map() -> None:
    """Nothing to group by, nothing to count."""
    bare = reading_of([replace(n, metadata=replace(n.metadata, labels={})) for n in reading("cpu=1").nodes], [], [])  # fmt: skip
    assert lines(bare)[0] == "1 node, 0 racks"
    json.dumps(Overview(bare).data())


def test_yaml_says_what_json_says() -> None:
    """Also about nodes that take no pods: answers are plain values."""
    found = reading("dgx-h100=2", [HELD], cordoned=["dgx-h100-0"])
    devices = device_rows(found, node="dgx-h100-0")
    listing = Listing("devices", DEVICE_COLUMNS, [device_cells(row) for row in devices], devices)
    for picture in (Overview(found), NodeDrawing(found, found.nodes[0]), listing):
        data = picture.data()
        assert yaml.safe_load(yaml.safe_dump(data)) == json.loads(json.dumps(data)) == data


def test_a_terminal_without_unicode_gets_ascii() -> None:
    """Bars and boxes are drawn with what it has."""
    found = reading("dgx-h100=2", [HELD])
    out = Console(file=TextIOWrapper(BytesIO(), encoding="ascii"), width=80)
    for picture in (Overview(found), NodeDrawing(found, found.nodes[0])):
        assert picture.plain(out).isascii()
