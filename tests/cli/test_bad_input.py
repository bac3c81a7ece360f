"""Bad input of every class: one clear line that names file and place, exit status 1, nothing else."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from drayman.cli.main import cli

HEAD = b"apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
SLICE = (
    b"apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec:\n  driver: d.x\n"
    b"  nodeName: node\n  pool: {name: p, generation: 1, resourceSliceCount: 1}\n  devices:\n  - name: d\n"
)
CLAIM = (
    b"apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec:\n  devices:\n    requests:\n"
    b"    - name: r\n      exactly:\n        deviceClassName: x\n        count: "
)
COUNT = "ResourceClaim c: spec.devices.requests[0].exactly.count: "
VALUE = "ResourceSlice s: spec.devices[0].capacity[m].value: "


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def capacity(value: str) -> bytes:
    return SLICE + f"    capacity: {{m: {{value: {value}}}}}\n".encode()


MANIFESTS: dict[str, tuple[bytes, str]] = {
    "binary": (bytes(range(128, 256)) * 50, ":1: not valid UTF-8"),
    "compressed": (gzip.compress(HEAD), ":1: not valid UTF-8"),
    "UTF-16": (HEAD.decode().encode("utf-16"), ":1: not valid UTF-8; it looks like UTF-16"),
    "UTF-32": (HEAD.decode().encode("utf-32"), ":1: not valid UTF-8; it looks like UTF-16"),
    "NUL": (HEAD + b"x: \x00\n", ":4: not valid YAML: "),
    "tabs": (b"apiVersion: v1\nmetadata:\n\tname: x\n", ":3: not valid YAML: "),
    "truncated": (HEAD + b"spec: [1, 2", ":4: not valid YAML: "),
    "recursive alias": (HEAD + b"spec: &a {b: *a}\n", ":4: the alias *a is unknown or contains"),
    "merge of a text": (HEAD + b"spec: {<<: x}\n", ":4: only mappings can be merged with <<"),
    "custom tag": (HEAD + b"spec: !include x\n", ":4: the tag !include is not supported"),
    "number as a key": (HEAD + b"5: x\n", ":4: the key 5 is not a text; put it in quotes"),
    "deep flow lists": (HEAD + b"spec: " + b"[" * 100_000, ":4: nested more than 256 levels deep"),
    "deep flow maps": (HEAD + b"spec: " + b"{a: " * 50_000, ":4: nested more than 256 levels"),
    "deep block": (HEAD + b"spec:\n" + b"- " * 50_000, ":5: nested more than 256 levels deep"),
    "deep JSON": (b'{"a":' * 100_000, ":1: nested more than 256 levels deep"),
    "unknown version": (
        CLAIM.replace(b"/v1", b"/v7") + b"1\n",
        ":1: ResourceClaim c: apiVersion: ",
    ),
    "count of 2^63": (CLAIM + b"9223372036854775808\n", f":10: {COUNT}expected an integer from"),
    "count of a million digits": (CLAIM + b"9" * 1_000_000, f":10: {COUNT}expected integer"),
    "count as hexadecimal bomb": (CLAIM + b"0x" + b"f" * 100_000, f":10: {COUNT}expected integer"),
    "count as a text": (CLAIM + b"'1'\n", f":10: {COUNT}expected integer, got string"),
    "negative count": (CLAIM + b"-1\n", ":10: ResourceClaim c: spec.devices.requests[0]"),
    "infinite count": (CLAIM + b".inf\n", ":10: .inf is not a number in JSON"),
    "quantity 1e400": (capacity("1e400"), f":10: {VALUE}quantities are limited to 100 digits"),
    "quantity 1e999999999": (capacity("'1e999999999'"), f":10: {VALUE}quantities are limited"),
    "empty quantity": (capacity("''"), f":10: {VALUE}quantities must match"),
    "quantity with a space": (capacity("1 Gi"), f":10: {VALUE}quantities must match"),
    "hexadecimal text": (capacity("'0x10'"), f":10: {VALUE}quantities must match"),
    "quantity without end": (capacity("0." + "0" * 100_000 + "1"), f":10: {VALUE}quantities are"),
}


@pytest.mark.parametrize(("data", "start"), MANIFESTS.values(), ids=MANIFESTS)
def test_manifests(data: bytes, start: str, tmp_path: Path) -> None:
    """`validate` names file, line, object and field."""
    file = tmp_path / "bad.yaml"
    file.write_bytes(data)
    result = invoke("validate", str(file))
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"{file}{start}")


@pytest.mark.parametrize("data", [data for data, _ in MANIFESTS.values()], ids=MANIFESTS)
def test_reports_as_data_can_be_read(data: bytes, tmp_path: Path) -> None:
    """JSON and YAML output stay valid, and say the same, whatever the input is."""
    file = tmp_path / "bad.yaml"
    file.write_bytes(data)
    as_json = json.loads(invoke("validate", "-o", "json", str(file)).stdout)
    assert as_json == yaml.safe_load(invoke("validate", "-o", "yaml", str(file)).stdout)
    assert as_json["valid"] is False
    assert all(finding["message"] for finding in as_json["findings"])


ENTRY = {"name": "x", "driver": "d", "device": {"name": "a"}}
DEVICES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", ": has no devices; expected ResourceSlices"),
    "no devices": (b"[]", ": has no devices; expected ResourceSlices"),
    "truncated": (b'[{"name":', ":1: not valid JSON: "),
    "number": (b"[\n5]", ": device 0: expected an object with name, driver and device"),
    "no name": (b'[{"driver": "d"}]', ": device 0: name: expected string"),
    "no device": (
        b'[{"name": "x", "driver": "d"}]',
        ": device 0: device: expected object, got null",
    ),
    "wrong type": (
        json.dumps([{**ENTRY, "device": {"attributes": {"t": 5}}}]).encode(),
        ": device 0: device.attributes[t]: expected object, got integer",
    ),
    "field twice": (b'[{"name": "x", "name": "y"}]', ":1: not valid JSON: the key 'name' is there"),
    "infinite quantity": (
        b'[{"name":"x","driver":"d","device":{"capacity":{"m":{"value":1e400}}}}]',
        ": device 0: device.capacity[m].value: quantities are limited",
    ),
    "deep": (b"[" * 100_000, ":1: nested more than 256 levels deep"),
    "text": (b"hello", ":1: expected an object with apiVersion and kind"),
    "another kind": (CLAIM + b"1\n", ":1: ResourceClaim c: expected a ResourceSlice"),
}


@pytest.mark.parametrize(("data", "start"), DEVICES.values(), ids=DEVICES)
def test_devices(data: bytes, start: str, tmp_path: Path) -> None:
    """`cel --devices` names file, device and field."""
    file = tmp_path / "devices"
    file.write_bytes(data)
    result = invoke("cel", "-e", "true", "--devices", str(file))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {file}{start}")
    assert (result.stdout, len(result.stderr.splitlines())) == ("", 1)


VECTORS: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"\nx", ":2: not valid JSON: Expecting value"),
    "array": (b"[]", ":1: expected an object with id and expression"),
    "no id": (b'{"expression": "true"}', ":1: id: expected string"),
    "number": (b'{"id": "a", "expression": 5}', ":1: expression: expected string"),
    "field twice": (b'{"id": "a", "id": "b"}', ":1: not valid JSON: the key 'id' is there twice"),
    "deep": (b'{"id":' * 100_000, ":1: nested more than 256 levels deep"),
    "id twice": (b'{"id": "a", "expression": "true"}\n' * 2, ":2: id: a is already in line 1"),
}


@pytest.mark.parametrize(("data", "start"), VECTORS.values(), ids=VECTORS)
def test_vectors(data: bytes, start: str, tmp_path: Path) -> None:
    """`cel --vectors` names file, line and field, and writes no results."""
    devices, vectors, results = tmp_path / "d.json", tmp_path / "v.jsonl", tmp_path / "r.jsonl"
    devices.write_bytes(codecs.BOM_UTF8 + json.dumps([ENTRY]).encode())
    vectors.write_bytes(data)
    arguments = ["--vectors", str(vectors), "--devices", str(devices), "--results", str(results)]
    result = invoke("cel", *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {vectors}{start}")
    assert not results.exists()


def test_devices_of_one_name_cannot_be_told_apart(tmp_path: Path) -> None:
    """Results of vectors are by name: a name that is there twice is an error."""
    devices, vectors = tmp_path / "d.json", tmp_path / "v.jsonl"
    devices.write_text(json.dumps([ENTRY, ENTRY]))
    vectors.write_text('{"id": "a", "expression": "true"}')
    result = invoke("cel", "--vectors", str(vectors), "--devices", str(devices))
    assert (result.exit_code, result.stderr) == (
        1,
        f"error: {devices}: device x: name: appears twice\n",
    )


USAGE = {
    "neither": ["cel", "--devices", "d"],
    "both": ["cel", "--devices", "d", "-e", "true", "--vectors", "v"],
    "output of vectors": ["cel", "--devices", "d", "--vectors", "v", "-o", "json"],
    "results of one": ["cel", "--devices", "d", "-e", "true", "--results", "r"],
    "standard input twice": ["cel", "--devices", "-", "--vectors", "-"],
    "no steps": ["allocate", "--problems", "p", "--results", "r", "--max-steps", "0"],
    "no policy": ["allocate", "--problems", "p", "--results", "r", "--policy", "worst"],
    "no file": ["validate"],
    "no format": ["validate", "-o", "xml", "f"],
}


@pytest.mark.parametrize("arguments", USAGE.values(), ids=USAGE)
def test_wrong_command_lines(arguments: list[str]) -> None:
    """A wrong command line exits 2 and says what is wrong."""
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr


def test_a_folder_without_manifests_is_an_error(tmp_path: Path) -> None:
    """It is not the folder that was meant."""
    result = invoke("validate", str(tmp_path))
    assert result.exit_code == 1
    assert result.stdout == f"{tmp_path}: has no files that end in .yaml, .yml, .json\n"
