"""Work grows with what is asked for, and not faster: of every request, and of everything that runs in a cluster.

Each search runs in a process of its own, in which the package is compiled with counters.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

from growth.comparing import BOUNDED

TESTS = Path(__file__).resolve().parents[1]
PARTS = 2
LONGEST_S = 3600


def search(module: str, *arguments: str) -> tuple[list[str], int]:
    """What a search found, and how much it has tried."""
    paths = f"import sys; sys.path[:0] = {[str(TESTS), str(TESTS.parent / 'src')]!r}"
    program = f"{paths}; import runpy; runpy.run_module('growth.{module}', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    *found, last = done.stdout.splitlines()
    return found, int(last.split()[0])


@pytest.mark.parametrize("part", range(PARTS))
def test_requests_take_work_in_proportion_to_their_size(part: int) -> None:
    """No list or map of any kind that is served makes a write, a patch, an apply or an answer grow faster than the list."""
    found, tried = search("search_requests", str(part), str(PARTS))
    assert found == []
    assert tried > 400 / PARTS


def test_custom_resources_rights_and_lists_take_work_in_proportion() -> None:
    """Nor do schemas, rules, roles, bindings, selectors, definitions or managers."""
    found, played = search("search_server")
    assert found == []
    assert played > 30


def test_control_loops_take_work_in_proportion_to_the_cluster() -> None:
    """Nor do controllers, garbage collection, the scheduler and nodes with the number of objects."""
    found, played = search("search_controllers")
    assert found == []
    assert played > 20


@pytest.mark.parametrize("name", BOUNDED)
def test_what_may_grow_exists(name: str) -> None:
    """A function that is gone needs no exemption."""
    resolve_name(name)
