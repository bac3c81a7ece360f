"""One server for all the tests here, a namespace for each, and clients against it."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest

from apiserver.e2e.driving import Kubectl, Server, running

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A durable server with everything on, in a directory of its own."""
    folder = tmp_path_factory.mktemp("server")
    with running(folder / "config", "--data-dir", folder / "data") as server:
        yield server


@pytest.fixture
def api(server: Server) -> Iterator[kubernetes.client.ApiClient]:
    """The official Python client."""
    client = kubernetes.config.new_client_from_config(str(server.kubeconfig))
    with client:
        yield client


@pytest.fixture
def namespace(api: kubernetes.client.ApiClient) -> str:
    """A namespace that no other test has."""
    name = f"test-{next(_numbers)}"
    body: dict[str, Any] = {"metadata": {"name": name}}
    kubernetes.client.CoreV1Api(api).create_namespace(body)
    return name


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kubectl keeps what it has discovered: shared, so that it asks once."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(server: Server, namespace: str, kubectl_home: Path) -> Kubectl:
    """The kubectl of this machine, in a namespace of the test's own."""
    return Kubectl(server, namespace, kubectl_home)
