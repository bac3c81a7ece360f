"""Clusters of simulated hardware for the tests here, each started once and found by its profiles."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from apiserver.e2e.driving import Kubectl, running

Clusters = Callable[[str], Kubectl]


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """kubectl for a cluster with some profiles."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    started: dict[str, Kubectl] = {}
    with ExitStack() as stack:

        def cluster(profiles: str) -> Kubectl:
            if profiles not in started:
                folder = tmp_path_factory.mktemp("cluster")
                options = ("--ephemeral", "--profile", profiles)
                server = stack.enter_context(running(folder / "config", *options))
                started[profiles] = Kubectl(server, "", folder)
            return started[profiles]

        yield cluster
