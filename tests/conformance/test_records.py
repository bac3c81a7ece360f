"""The files of records are what their page says, and the list of differences is about them."""

from __future__ import annotations

import re

import pytest

from conformance.differences import DIFFERENCES, assert_only_known_differences
from conformance.records import FILES, FOLDER, lines, problems

PAGE = (FOLDER.parent / "README.md").read_text()


def test_the_page_counts_the_records_of_every_file() -> None:
    """No file is left out, and no number is out of date."""
    counted = re.findall(r"^\| `(\w+/\w+)` \| (\d+) \|", PAGE, flags=re.MULTILINE)
    assert {name: int(number) for name, number in counted} == {f: len(lines(f)) for f in FILES}
    there = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.*")}
    assert there == {f"{file}.jsonl.gz" for file in FILES}


@pytest.mark.parametrize("file", FILES)
def test_a_file_depends_on_its_text_alone(file: str) -> None:
    """Its header has neither the name nor the time of the text, so that the same records are the same bytes."""
    header = (FOLDER / f"{file}.jsonl.gz").read_bytes()[:8]
    assert header == b"\x1f\x8b\x08\x00" + bytes(4)


@pytest.mark.parametrize("subject", DIFFERENCES)
def test_known_differences_name_records(subject: str) -> None:
    """A name that is in no file would never be compared."""
    file, _, _ = subject.partition(" ")
    assert set(DIFFERENCES[subject]) <= {record["name"] for record in problems(file)}


def test_a_difference_that_is_not_known_is_reported() -> None:
    """With the name of the record and what differs."""
    with pytest.raises(AssertionError, match="new: other status"):
        assert_only_known_differences("api/validation", ["new"], {"new": "other status"})


def test_a_known_difference_that_is_gone_is_reported() -> None:
    """So the list never grows old. A record that was not compared is no matter."""
    name = "pod/quota-exceeded"
    assert_only_known_differences("api/scenarios", [name, "other"], {name: "no quota"})
    assert_only_known_differences("api/scenarios", ["other"], {})
    with pytest.raises(AssertionError, match=f"{name} agrees now"):
        assert_only_known_differences("api/scenarios", [name], {})
