"""`drayman logs`: whose lines are whose, and what is kept of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from drayman.cli.cluster.log_file import MOST_WAITING, BoundedFileHandler, InBackground
from drayman.cli.cluster.log_lines import Chooser, LineFormatter, component_of
from drayman.cli.main import cli

LOG = """\
Kubernetes API  https://127.0.0.1:1
2026-01-02T03:04:05Z scheduler info pod default/a on n
2026-01-02T03:04:06Z queues warning Workload default/w: no
Traceback (most recent call last):
  line
2026-01-02T03:04:07Z scheduler info pod default/b waits, Unschedulable: no room
"""


@pytest.mark.parametrize(
    ("logger", "component"),
    [
        ("drayman.scheduler.decision_log", "scheduler"),
        ("drayman.controllers.quota.loop", "queues"),
        ("drayman.controllers.multikueue.links", "queues"),
        ("drayman.controllers.claims.controller", "controllers"),
        ("drayman.node.simulated.simulation", "nodes"),
        ("drayman.node.agent.running", "nodes"),
        ("drayman.drivers.kit.plugin", "nodes"),
        ("drayman.plugins.serving", "nodes"),
        ("drayman.apiserver.serving.http", "server"),
        ("drayman.schedulers", "server"),
    ],
)
def test_a_logger_belongs_to_a_component(logger: str, component: str) -> None:
    """By its package."""
    assert component_of(logger) == component


@pytest.mark.parametrize(
    ("words", "first_words"),
    [
        ((), ["Kubernetes", "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", "Traceback", "line", "2026-01-02T03:04:07Z"]),
        (("scheduler",), ["2026-01-02T03:04:05Z", "2026-01-02T03:04:07Z"]),
        (("scheduler", "--tail", "1"), ["2026-01-02T03:04:07Z"]),
        (("queues",), ["2026-01-02T03:04:06Z", "Traceback", "line"]),
        (("server", "queues", "--tail", "0"), []),
        (("nodes",), []),
    ],
    ids=["all", "one", "its last", "with what follows", "none of two", "silent"],
)  # fmt: skip
def test_lines_are_chosen_by_component(
    tmp_path: Path, words: tuple[str, ...], first_words: list[str]
) -> None:
    """A line that names no component goes with the one before it."""
    (tmp_path / "drayman.log").write_text(LOG)
    done = CliRunner().invoke(cli, ["logs", *words, "--data-dir", str(tmp_path)])
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == first_words


def test_what_was_full_comes_first(tmp_path: Path) -> None:
    """The file from before is part of the log."""
    (tmp_path / "drayman.log.1").write_text("before\n")
    (tmp_path / "drayman.log").write_text("after\nincompl")
    done = CliRunner().invoke(cli, ["logs", "--data-dir", str(tmp_path)])
    assert done.stdout == "before\nafter\n"


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger("drayman.scheduler.test_logs")
    found.propagate, found.level = False, logging.INFO
    yield found
    for handler in list(found.handlers):
        found.removeHandler(handler)
        handler.close()


def test_the_log_is_bounded(tmp_path: Path, logger: logging.Logger) -> None:
    """Two files, of which one is about as long as is allowed; what is appended by others goes on in the same file."""
    path = tmp_path / "drayman.log"
    handler = BoundedFileHandler(path, most_bytes=500)
    handler.setFormatter(LineFormatter())
    logger.addHandler(handler)
    with path.open("a") as other:
        for number in range(100):
            logger.info("line %d", number)
        other.write("the end\n")
    kept = (*(tmp_path / "drayman.log.1").read_text().splitlines(), *path.read_text().splitlines())
    assert kept[-1] == "the end"
    assert kept[-2].endswith("scheduler info line 99")
    assert len(list(tmp_path.iterdir())) == 2
    assert sum(len(line) + 1 for line in kept) < 1200
    assert all(map(Chooser({"scheduler"}).wants, kept))


class Stuck(logging.Handler):
    """A disk that takes nothing for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.free, self.lines = threading.Event(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        self.free.wait()
        self.lines.append(self.format(record))


def test_a_slow_disk_keeps_nobody_waiting() -> None:
    """Lines wait in order, up to a bound; arguments are read when the line is logged, not when it is written."""
    stuck = Stuck()
    background = InBackground(stuck)
    logger = logging.Logger("here")
    logger.addHandler(background)
    about = {"state": "first"}
    for _ in range(MOST_WAITING + 100):
        logger.info("%s", about)
    about["state"] = "later"
    stuck.free.set()
    background.close()
    assert MOST_WAITING <= len(stuck.lines) < MOST_WAITING + 100
    assert set(stuck.lines) == {"{'state': 'first'}"}
