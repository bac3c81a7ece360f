"""Reading and writing files, and what is said when that fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drayman.cli import files
from drayman.cli.errors import UserError


def test_missing_file_is_named() -> None:
    """The error names the file and the reason."""
    with pytest.raises(UserError, match=r"nowhere\.yaml: cannot be read: no such file"):
        files.read("nowhere.yaml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A folder in place of a file is said to be one."""
    with pytest.raises(UserError, match="is a directory"):
        files.read(str(tmp_path))


def test_a_name_with_a_null_character_is_an_error() -> None:
    """A name the system cannot even look up is a user error too."""
    with pytest.raises(UserError, match="is no file name"):
        files.read("a\0b")


def test_absurdly_large_inputs_are_refused(tmp_path: Path) -> None:
    """A file beyond the limit is refused instead of filling the memory."""
    big = tmp_path / "big.json"
    with big.open("wb") as file:
        file.truncate(files.MOST_BYTES + 1)  # sparse: takes no room on the disk
    with pytest.raises(UserError, match="is larger than 1024 MiB"):
        files.read(str(big))


def test_results_appear_whole(tmp_path: Path) -> None:
    """A result is there under its name when all of it is written, with ordinary permissions."""
    target = tmp_path / "out.jsonl"
    with files.writing(str(target)) as out:
        out.write(b"one\n")
        assert not target.exists()
        out.write(b"two\n")
    assert target.read_bytes() == b"one\ntwo\n"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_failure_leaves_the_old_result(tmp_path: Path) -> None:
    """Nothing half-written: the file that was there stays, and nothing is left beside it."""
    target = tmp_path / "out.jsonl"
    target.write_bytes(b"old")
    with pytest.raises(TypeError), files.writing(str(target)) as out:
        out.writelines([b"new", 1])  # type: ignore[list-item]
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_an_unwritable_place_is_named(tmp_path: Path) -> None:
    """The error names the file that cannot be written."""
    target = tmp_path / "no" / "out.jsonl"
    with (
        pytest.raises(UserError, match=r"out\.jsonl: cannot be written"),
        files.writing(str(target)),
    ):
        pass


def test_devices_are_written_to_and_not_replaced() -> None:
    """Writing to something that is no regular file leaves it what it is."""
    with files.writing(os.devnull) as out:
        out.write(b"gone")
    assert not Path(os.devnull).is_file()
