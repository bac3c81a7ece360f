"""Reading and writing files, and what is said when that fails."""

from __future__ import annotations

import os
import sys
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
    with pytest.raises(UserError, match="not a file name"):
        files.read("a\0b")


def test_absurdly_large_inputs_are_refused(tmp_path: Path) -> None:
    """A file beyond the limit is refused instead of filling the memory."""
    big = tmp_path / "big.json"
    with big.open("wb") as file:
        file.truncate(files.MOST_BYTES + 1)  # sparse: takes no room on the disk
    with pytest.raises(UserError, match="is larger than 512 MiB"):
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


def test_an_empty_name_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty name, as from a variable that is not set, does not stand for the current folder."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="the name of a file is empty"):
        files.read("")
    with pytest.raises(UserError, match="the name of a file is empty"), files.writing(""):
        pass


def test_a_full_disk_is_named() -> None:
    """What cannot be written for lack of room is an error of the file."""
    with (
        pytest.raises(UserError, match="/dev/full: cannot be written: no space left on device"),
        files.writing("/dev/full") as out,
    ):
        out.write(b"x")


def test_a_folder_is_no_place_for_results(tmp_path: Path) -> None:
    """A folder stays what it is."""
    with (
        pytest.raises(UserError, match="cannot be written: is a directory"),
        files.writing(str(tmp_path)),
    ):
        pass


def test_a_name_with_a_null_character_is_no_place_for_results() -> None:
    """A name the system cannot even look up is a user error."""
    with pytest.raises(UserError, match="not a file name"), files.writing("a\0b"):
        pass


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Results go where a link leads."""
    (tmp_path / "link").symlink_to("target")
    with files.writing(str(tmp_path / "link")) as out:
        out.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"x"


def test_results_with_the_longest_of_names(tmp_path: Path) -> None:
    """A name that just fits does not fail because of the temporary file beside it."""
    target = tmp_path / ("x" * 255)
    with files.writing(str(target)) as out:
        out.write(b"x")
    assert target.read_bytes() == b"x"


def test_results_must_not_replace_an_input(tmp_path: Path) -> None:
    """However it is called, a file that is read is not written."""
    source = tmp_path / "in"
    source.write_bytes(b"x")
    (tmp_path / "link").symlink_to("in")
    for results in (source, tmp_path / "link", tmp_path / ".." / tmp_path.name / "in"):
        with pytest.raises(UserError, match="is an input and cannot be the result too"):
            files.refuse_overwriting(str(results), files.STANDARD, str(source))
    files.refuse_overwriting(str(tmp_path / "other"), str(source))
    files.refuse_overwriting(files.STANDARD, str(source))


def test_a_closed_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may be started without standard input."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="<stdin>: cannot be read: it is closed"):
        files.read(files.STANDARD)


def test_a_closed_output_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may be started without standard output."""
    monkeypatch.setattr(sys, "stdout", None)
    with (
        pytest.raises(UserError, match="<stdout>: cannot be written: it is closed"),
        files.writing(files.STANDARD),
    ):
        pass


def test_names_that_are_no_text_are_spelt_out() -> None:
    """A name is bytes; what is no UTF-8 shows as such."""
    assert files.display_name("\udcff.yaml") == "\\xff.yaml"
