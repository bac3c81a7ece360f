"""The folder of an instance: who runs on it, as other processes find out."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from drayman.apiserver.instance.folder import Folder, FolderError, Record, default_folder, is_alive
from drayman.cluster.embedded.locking import StoreLock


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "data")
    made.prepare()
    return made


def record(pid: int, *, durable: bool = False) -> Record:
    return Record(pid, "https://127.0.0.1:1", "/kubeconfig", "2026-01-02T03:04:05Z", durable)


def ended_process() -> int:
    """The number of a process that was."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_is_announced_is_found_until_it_is_retracted(folder: Folder) -> None:
    """The record is for its owner only."""
    mine = record(os.getpid())
    folder.announce(mine)
    assert folder.running() == mine
    (file,) = folder.path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    folder.retract()
    assert folder.running() is None
    folder.retract()


def test_the_record_of_a_process_that_is_gone_says_nothing(folder: Folder) -> None:
    """A process that was killed could not retract it."""
    folder.announce(record(ended_process()))
    assert folder.running() is None


def test_a_durable_instance_runs_as_long_as_it_has_the_lock(folder: Folder) -> None:
    """A process id alone may belong to somebody else by now."""
    mine = record(os.getpid(), durable=True)
    folder.announce(mine)
    assert folder.running() is None
    lock = StoreLock(folder.store)
    try:
        assert folder.running() == mine
    finally:
        lock.release()
    assert folder.running() is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"pid": 1}', b"\xff", b"null"])
def test_a_record_that_makes_no_sense_is_none(folder: Folder, content: bytes) -> None:
    """Half a file, or somebody else's, is not an instance."""
    folder.announce(record(os.getpid()))
    (file,) = folder.path.iterdir()
    file.write_bytes(content)
    assert folder.running() is None


def test_asking_about_a_folder_makes_none(tmp_path: Path) -> None:
    """Nothing runs where there is no folder, and there is none afterwards."""
    folder = Folder(tmp_path / "nowhere")
    assert folder.running() is None
    assert not folder.path.exists()


def test_preparing_makes_the_folder_with_its_parents(tmp_path: Path) -> None:
    """It is for its owner only, and one that is there already stays as it is."""
    folder = Folder(tmp_path / "a" / "b")
    folder.prepare()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    folder.path.chmod(0o755)
    folder.prepare()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o755


def test_a_folder_below_a_file(tmp_path: Path) -> None:
    """The sentence names the path and says why."""
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="file/below: not a directory"):
        Folder(tmp_path / "file" / "below").prepare()


def test_the_default_folder_is_in_the_state_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the user says, and by convention else."""
    monkeypatch.delenv("DRAYMAN_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "drayman"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".local" / "state" / "drayman"
    monkeypatch.setenv("DRAYMAN_DATA_DIR", str(tmp_path / "named"))
    assert default_folder() == tmp_path / "named"


def test_processes_are_alive_or_not() -> None:
    """This one is, one that has ended is not."""
    assert is_alive(os.getpid())
    assert not is_alive(ended_process())


def test_a_lock_that_cannot_be_looked_at_is_taken_for_one_that_is_held(tmp_path: Path) -> None:
    """As on a disk that has become read-only under a running instance: its record counts."""
    folder = Folder(tmp_path)
    mine = record(os.getpid(), durable=True)
    folder.announce(mine)
    folder.store.with_name("store.db.lock").mkdir()
    assert folder.running() == mine
