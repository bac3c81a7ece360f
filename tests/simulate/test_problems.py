"""Files of problems: what is read, what is remarked on, and what is refused with which words."""

from __future__ import annotations

import codecs
import gzip
import json
from typing import Any

import pytest

from drayman.simulate import problems
from drayman.simulate.problems import ProblemError, decode_problem, decode_problems

Json = Any
PROBLEM: Json = {"name": "p", "node": {"metadata": {"name": "n"}}, "claims": []}
LINE = json.dumps(PROBLEM).encode()


def names(file: str, data: bytes) -> list[str]:
    return [problem.name for problem in decode_problems(file, data)]


READ = {
    "lines": ("f.jsonl", LINE + b"\n\n  \r\n" + LINE + b"\r\n"),
    "no ending": ("f", LINE + b"\n" + LINE),
    "array": ("f.json", b"[" + LINE + b"," + LINE + b"]"),
    "compressed": ("f.jsonl.gz", gzip.compress(LINE + b"\n") * 2),
    "lines with a mark": ("f.jsonl", codecs.BOM_UTF8 + LINE + b"\n" + LINE),
    "array with a mark": ("f.json", codecs.BOM_UTF8 + b"[" + LINE + b"," + LINE + b"]"),
}


@pytest.mark.parametrize(("file", "data"), READ.values(), ids=READ)
def test_forms(file: str, data: bytes) -> None:
    """Arrays and lines, with what editors and shells put around them."""
    assert names(file, data) == ["p", "p"]


REFUSED = {
    "cut off": ("f.jsonl", LINE[:-3], "f.jsonl:1: not valid JSON: "),
    "second line": ("f.jsonl", LINE + b"\n\nx", "f.jsonl:3: not valid JSON: "),
    "deep line": ("f.jsonl", b"[" * 100_000, "f.jsonl:1: nested more than 256 levels"),
    "field twice": ("f", b'{"name": "a", "name": "b"}', "f:1: not valid JSON: the key 'name'"),
    "deep array": ("f.json", b"[" * 100_000, "f.json:1: nested more than 256 levels"),
    "broken array": ("f.json", b"[{},\n{]", "f.json:2: not valid JSON: "),
    "no array": ("f.json", LINE, "f.json: expected an array of problems"),
    "item of an array": ("f.json", b"[" + LINE + b",5]", "f.json: [1]: expected object"),
    "not compressed": ("f.json.gz", LINE, "f.json.gz: not a gzip file"),
    "cut off archive": ("f.gz", gzip.compress(LINE * 50)[:-9], "f.gz: not a gzip file"),
    "broken archive": ("f.json.gz", gzip.compress(b"["), "f.json.gz:1: not valid JSON"),
    "not UTF-8": ("f.jsonl", LINE + b"\n\xff", "f.jsonl:2: not valid UTF-8"),
}


@pytest.mark.parametrize(("file", "data", "start"), REFUSED.values(), ids=REFUSED)
def test_files_that_are_refused(file: str, data: bytes, start: str) -> None:
    """The error names the file, as it was given, and the line or position."""
    with pytest.raises(ProblemError) as caught:
        names(file, data)
    assert str(caught.value).startswith(start)


DEVICE = {"spec": {"devices": [{"name": "d", "capacity": {"m": {"value": "1e400"}}}]}}
WRONG: dict[str, tuple[Json, str]] = {
    "no object": ([], "expected object, got array"),
    "no name": ({"node": {}, "claims": []}, "name: a value is required"),
    "number as a name": ({**PROBLEM, "name": 5}, "name: expected string, got integer"),
    "no node": ({"name": "p", "claims": []}, "problem p: node: a value is required"),
    "no claims": ({"name": "p", "node": {}}, "problem p: claims: a value is required"),
    "claims": ({**PROBLEM, "claims": 5}, "problem p: claims: expected array, got integer"),
    "claim": ({**PROBLEM, "claims": [5]}, "problem p: claims[0]: expected object, got integer"),
    "features": ({**PROBLEM, "features": "x"}, "problem p: features: expected array, got string"),
    "quantity": (
        {**PROBLEM, "slices": [DEVICE]},
        "problem p: slices[0].spec.devices[0].capacity[m].value: quantities are limited",
    ),
    "in use": (
        {**PROBLEM, "allocated": {"devices": [{"pool": 1}]}},
        "problem p: allocated.devices[0].pool: expected string, got integer",
    ),
    "very long name": ({**PROBLEM, "name": "x" * 10_000, "claims": 5}, f"problem {'x' * 297}...: "),
}


@pytest.mark.parametrize(("value", "start"), WRONG.values(), ids=WRONG)
def test_problems_that_are_refused(value: Json, start: str) -> None:
    """The error names the problem and the field."""
    with pytest.raises(ProblemError) as caught:
        decode_problem(value)
    assert str(caught.value).startswith(start)


def test_null_is_absence() -> None:
    """A list that is null is an empty one."""
    assert decode_problem({**PROBLEM, "claims": None, "slices": None}).claims == ()


def test_what_means_nothing_is_remarked_on() -> None:
    """Misspelt fields and gates are told, notes at the top level are not."""
    value = {
        **PROBLEM,
        "notes": [],
        "node": {"metadata": {}, "spec": {"podCIDR": "x"}},
        "claims": [{"spec": {"device": {}}}],
        "features": ["DRAAdminAccess", "DRAAdminAcess"],
    }
    remarks: list[str] = []
    assert len(list(decode_problems("f", json.dumps(value).encode(), remarks.append))) == 1
    assert remarks == [
        "f:1: problem p: claims[0].spec.device: unknown field",
        "f:1: problem p: features: DRAAdminAcess is not a gate of the allocator",
    ]


def test_what_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small archive can hold anything; reading it ends at the limit."""
    monkeypatch.setattr(problems, "MAX_BYTES", 1 << 20)
    bomb = gzip.compress(bytes(8 << 20))
    with pytest.raises(ProblemError, match=r"^f\.jsonl\.gz: more than 1 MiB when unpacked$"):
        names("f.jsonl.gz", bomb)
