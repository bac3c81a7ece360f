"""Sockets of plugins: where they are, and what is removed."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from drayman.plugins.errors import SocketError
from drayman.plugins.sockets import Sockets, answers, make_way, remove_dead


@contextmanager
def listening(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield


def left_behind(path: Path) -> Path:
    """The socket of a process that has ended without removing it."""
    with listening(path):
        pass
    return path


@pytest.mark.parametrize(
    ("instance", "registration", "services"),
    [("", "d-reg.sock", "dra.sock"), ("abc", "d-abc-reg.sock", "dra-abc.sock")],
    ids=["the only instance", "one of several"],
)
def test_sockets_are_where_a_kubelet_looks(instance, registration, services) -> None:
    """An instance with a name has sockets of its own."""
    found = Sockets.of("d", Path("/registry"), Path("/plugins/d"), instance)
    assert found == Sockets(Path("/registry", registration), Path("/plugins/d", services))


def test_a_path_that_is_too_long_is_refused_with_its_length() -> None:
    """The kernel would cut it, or say no more than that an address is invalid."""
    with pytest.raises(SocketError, match=r"at most 107 bytes, and this one 1\d\d"):
        Sockets.of("d", Path("/" + "r" * 120), Path("/p"))


def test_the_socket_of_a_dead_process_makes_way(tmp_path: Path) -> None:
    """It is removed; what is not there is fine."""
    path = left_behind(tmp_path / "a.sock")
    assert not answers(path)
    make_way(path)
    make_way(path)
    assert not path.exists()


def test_a_socket_that_is_served_stays(tmp_path: Path) -> None:
    """Another instance would lose its node without noticing."""
    path = tmp_path / "a.sock"
    with listening(path), pytest.raises(SocketError, match="another process serves there"):
        make_way(path)
    assert path.exists()


def test_a_process_that_is_busy_serves_its_socket(tmp_path: Path) -> None:
    """Others wait already; it is there all the same."""
    path = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as server, ExitStack() as clients:
        server.bind(str(path))
        server.listen(0)
        with suppress(BlockingIOError):
            while True:
                client = clients.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(str(path))
        assert answers(path)


def test_what_is_no_socket_stays(tmp_path: Path) -> None:
    """A wrong option must not cost anybody a file."""
    path = tmp_path / "a.sock"
    path.write_text("precious")
    with pytest.raises(SocketError, match="something else"):
        make_way(path)
    assert path.read_text() == "precious"


def test_only_sockets_of_dead_instances_of_the_driver_are_removed(tmp_path: Path) -> None:
    """Those of other drivers and of instances that live stay."""
    dead = left_behind(tmp_path / "d-old-reg.sock")
    dead_services = left_behind(tmp_path / "dra-old.sock")
    other = left_behind(tmp_path / "e-old-reg.sock")
    alive = tmp_path / "d-new-reg.sock"
    with listening(alive):
        assert sorted(remove_dead("d", tmp_path, tmp_path)) == [dead, dead_services]
    assert alive.exists()
    assert other.exists()
