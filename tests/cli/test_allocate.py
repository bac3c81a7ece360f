"""`drayman allocate` reads problems and writes one line per answer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from drayman.cli.main import cli

FIELDS = {"name", "outcome", "elapsed_us", "cold_us", "steps"}


def problem(name: str, count: int) -> dict[str, Any]:
    """A node with two devices and a claim for `count` of them."""
    request = {
        "name": "r",
        "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": count},
    }
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool}
    return {
        "name": name,
        "node": {"metadata": {"name": "n"}},
        "classes": [{"metadata": {"name": "c"}, "spec": {}}],
        "slices": [
            {"metadata": {"name": "s"}, "spec": {**spec, "devices": [{"name": "a"}, {"name": "b"}]}}
        ],
        "claims": [
            {
                "metadata": {"name": "k", "namespace": "x"},
                "spec": {"devices": {"requests": [request]}},
            }
        ],
    }


PROBLEMS = [problem("fits", 2), problem("too many", 3)]
LINES = "\n".join(map(json.dumps, PROBLEMS)).encode()
ARRAY = json.dumps(PROBLEMS).encode()

FORMS = {
    "problems.jsonl": LINES,
    "problems.json": ARRAY,
    "problems.jsonl.gz": gzip.compress(LINES),
    "problems.json.gz": gzip.compress(ARRAY),
}


def allocate(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(cli, ["allocate", *arguments], input=stdin)


def parsed(data: bytes | str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("policy", ["first-fit", "best"])
def test_every_form_of_input_gives_the_same_lines(tmp_path: Path, name: str, policy: str) -> None:
    """Arrays and lines, plain or compressed, are answered in order."""
    source, target = tmp_path / name, tmp_path / "out.jsonl"
    source.write_bytes(FORMS[name])
    result = allocate("--problems", str(source), "--results", str(target), "--policy", policy)
    assert result.exit_code == 0, result.output
    fits, too_many = parsed(target.read_bytes())
    assert fits.keys() >= FIELDS
    assert (fits["name"], fits["outcome"]) == ("fits", "allocated")
    assert {entry["device"] for entry in fits["results"][0]["devices"]["results"]} == {"a", "b"}
    assert (too_many["name"], too_many["outcome"]) == ("too many", "unallocatable")
    assert result.stderr.startswith("2 problems: 1 allocated, 1 unallocatable; search ")


@pytest.mark.parametrize(
    "data", [LINES, ARRAY, gzip.compress(LINES)], ids=["lines", "array", "gzip"]
)
def test_standard_streams(data: bytes) -> None:
    """A dash reads standard input and writes standard output; the summary stays out of the way."""
    result = allocate("--problems", "-", "--results", "-", stdin=data)
    assert result.exit_code == 0
    assert [line["outcome"] for line in parsed(result.stdout)] == ["allocated", "unallocatable"]


def test_no_problems_give_no_lines() -> None:
    """An empty input is no error."""
    result = allocate("--problems", "-", "--results", "-")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no problems\n")


def test_a_step_limit_is_an_outcome_of_its_own() -> None:
    """A search that may take one step only ends in `timeout` or an answer, never in an error."""
    result = allocate("--problems", "-", "--results", "-", "--max-steps", "1", stdin=LINES)
    assert result.exit_code == 0
    assert {line["outcome"] for line in parsed(result.stdout)} <= {
        "allocated",
        "unallocatable",
        "timeout",
    }


BAD = {
    "not JSON": (b'{"name": ', "2"),
    "not an object": (b"[1]", "2"),
    "no name": (b"{}", "name"),
    "wrong type": (b'{"name": "p", "slices": 7}', "slices"),
    "wrong type inside": (
        b'{"name": "p", "node": {"metadata": {"name": []}}}',
        "node.metadata.name",
    ),
    "deep nesting": (b"[" * 100_000, "2"),
    "not text": (b"\xff\xff", "2"),
    "bad quantity": (
        b'{"name": "p", "slices": [{"spec": {"devices": [{"capacity": {"m": {"value": "lots"}}}]}}]}',
        "slices[0].spec.devices[0].capacity",
    ),
}


@pytest.mark.parametrize(("line", "place"), BAD.values(), ids=BAD)
def test_bad_problems_are_named_by_line_and_field(tmp_path: Path, line: bytes, place: str) -> None:
    """The error names file, line and field; no result file is left."""
    source, target = tmp_path / "bad.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(json.dumps(PROBLEMS[0]).encode() + b"\n" + line + b"\n")
    result = allocate("--problems", str(source), "--results", str(target))
    assert result.exit_code == 1
    assert "bad.jsonl:2: " in result.stderr
    assert place in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not target.exists()


def test_a_file_that_is_not_gzip_is_named(tmp_path: Path) -> None:
    """The ending promises gzip; what is inside is not."""
    source = tmp_path / "p.jsonl.gz"
    source.write_bytes(LINES)
    result = allocate("--problems", str(source), "--results", "-")
    assert result.exit_code == 1
    assert "p.jsonl.gz" in result.stderr
