"""`drayman cel` checks and evaluates selectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from drayman.api.codec import to_dict
from drayman.cli.main import cli
from drayman.drivers.profiles import dgx_h100

DEVICES = [
    {
        "name": "big",
        "driver": "d.example.com",
        "device": {"name": "x", "attributes": {"size": {"int": 9}}},
    },
    {"name": "small", "driver": "d.example.com", "device": {"attributes": {"size": {"int": 1}}}},
    {"name": "bare", "driver": "d.example.com", "device": {}},
]
SIZE = "device.attributes['d.example.com'].size > 5"


@pytest.fixture
def devices(tmp_path: Path) -> str:
    """A file with the plain array of devices."""
    path = tmp_path / "devices.json"
    path.write_text(json.dumps(DEVICES))
    return str(path)


def cel(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli, ["cel", *arguments], input=stdin)


def test_vectors_give_a_line_each(devices: str, tmp_path: Path) -> None:
    """Verdicts and costs by device name; an expression that does not compile says so."""
    vectors, results = tmp_path / "vectors.jsonl", tmp_path / "results.jsonl"
    lines = [{"id": "1", "expression": SIZE}, {"id": "2", "expression": "device.size +"}]
    vectors.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    result = cel("--vectors", str(vectors), "--devices", devices, "--results", str(results))
    assert result.exit_code == 0, result.output
    first, second = (json.loads(line) for line in results.read_text().splitlines())
    assert first["id"] == "1"
    assert first["compiles"] is True
    assert first["results"] == {"big": True, "small": False, "bare": "error"}
    assert first["costs"].keys() >= {"big", "small"}
    assert first["max_cost"] >= max(first["costs"].values())
    assert (second["id"], second["compiles"]) == ("2", False)


def test_one_expression_is_told_for_people(devices: str) -> None:
    """A line per device: match, no, or the error; then how many match."""
    result = cel("-e", SIZE, "--devices", devices)
    big, small, bare, total = result.stdout.splitlines()
    assert result.exit_code == 0
    assert big.split() == ["big", "match"]
    assert small.split() == ["small", "no"]
    assert bare.split()[:2] == ["bare", "error"]
    assert "size" in bare
    assert total == "1 of 3 devices match"


def test_errors_that_are_alike_are_told_once(tmp_path: Path) -> None:
    """Each device says that it fails; what fails stands below, with how many devices it concerns and some of them."""
    others = [{"name": f"nic-{n}", "driver": "nic.example.com", "device": {}} for n in range(5)]
    path = tmp_path / "devices.json"
    path.write_text(json.dumps([*DEVICES[:2], *others]))
    lines = cel("-e", SIZE, "--devices", str(path)).stdout.splitlines()
    assert [line.split() for line in lines[2:7]] == [[f"nic-{n}", "error"] for n in range(5)]
    assert lines[7:] == [
        "1 of 7 devices match",
        "error on 5 devices (nic-0, nic-1, nic-2 and 2 more): no such key: size",
    ]


def test_a_misspelt_attribute_is_pointed_out(devices: str) -> None:
    """Where no device has the attribute, the nearest name that exists is suggested."""
    result = cel("-e", SIZE.replace("size", "sise"), "--devices", devices)
    assert "`sise` is on 0 of 3 devices; did you mean `size`?" in result.stdout


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_one_expression_as_data(devices: str, form: str) -> None:
    """The same as a document."""
    result = cel("-e", SIZE, "--devices", devices, "-o", form)
    data: Any = (json.loads if form == "json" else yaml.safe_load)(result.stdout)
    assert [each["result"] for each in data["devices"]] == [True, False, "error"]


def test_a_selector_that_does_not_compile_shows_the_place(devices: str) -> None:
    """The error has the expression and a caret, and the exit status is 1."""
    result = cel("-e", "device.drivr == 'x'", "--devices", devices)
    assert result.exit_code == 1
    assert "does not compile" in result.stderr
    assert "device.drivr" in result.stderr
    assert "^" in result.stderr


def test_devices_come_from_resource_slices(tmp_path: Path) -> None:
    """A List of ResourceSlices, as kubectl prints it, is understood, in YAML and JSON."""
    slices = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [to_dict(s) for s in dgx_h100("node").slices],
    }
    expression = "device.driver == 'dra.net' && device.attributes['dra.net'].rdma"
    for name, text in (("s.json", json.dumps(slices)), ("s.yaml", yaml.safe_dump(slices))):
        path = tmp_path / name
        path.write_text(text)
        result = cel("-e", expression, "--devices", str(path))
        assert result.stdout.splitlines()[-1] == "8 of 16 devices match", result.output


BAD_DEVICES = {
    "nothing": "",
    "an empty array": "[]",
    "not an object": "[1]",
    "no driver": '[{"name": "a"}]',
    "a wrong type": '[{"name": "a", "driver": "d", "device": {"attributes": 3}}]',
    "another kind": "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n",
    "broken": "a: [",
}


@pytest.mark.parametrize("text", BAD_DEVICES.values(), ids=BAD_DEVICES)
def test_bad_devices_are_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    """One line, the file's name, exit status 1."""
    path = tmp_path / "devices.txt"
    path.write_text(text)
    result = cel("-e", "true", "--devices", str(path))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {path}")
    assert len(result.stderr.splitlines()) == 1


BAD_VECTORS = {
    "not JSON": "{",
    "not an object": "3",
    "no id": '{"expression": "true"}',
    "no expression": '{"id": "1"}',
}


@pytest.mark.parametrize("text", BAD_VECTORS.values(), ids=BAD_VECTORS)
def test_bad_vectors_are_named_by_line(devices: str, text: str) -> None:
    """The line of the vector is in the message."""
    result = cel("--vectors", "-", "--devices", devices, stdin=f"\n{text}\n")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: <stdin>:2: ")


@pytest.mark.parametrize("extra", [(), ("-e", "true", "--vectors", "v")], ids=["neither", "both"])
def test_expression_and_vectors_exclude_each_other(devices: str, extra: tuple[str, ...]) -> None:
    """One of the two is needed, not both."""
    result = cel("--devices", devices, *extra)
    assert result.exit_code == 2
    assert "either --expression or --vectors" in result.stderr


def test_devices_that_two_drivers_name_alike_are_told_apart(tmp_path: Path) -> None:
    """Pool and name are enough for a device, unless another driver uses both: then it has its driver before them."""
    slices, vectors = tmp_path / "slices.json", tmp_path / "vectors.jsonl"
    named = {"a.example.com": ("d0", "d1"), "b.example.com": ("d0",)}
    items = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": driver},
            "spec": {
                "driver": driver,
                "nodeName": "n",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": name} for name in names],
            },
        }
        for driver, names in named.items()
    ]
    slices.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    vectors.write_text(
        json.dumps({"id": "1", "expression": "device.driver == 'a.example.com'"}) + "\n"
    )
    result = cel("--vectors", str(vectors), "--devices", str(slices))
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["results"] == {
        "a.example.com/n/d0": True,
        "n/d1": True,
        "b.example.com/n/d0": False,
    }
