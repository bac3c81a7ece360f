"""`drayman node kubeconfig`: for which names, and with which address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from apiserver.e2e.driving import running
from drayman.cli.main import cli


def kubeconfig(data: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["node", "kubeconfig", *words, "--data-dir", str(data)])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a cluster on loopback."""
    folder = tmp_path_factory.mktemp("cluster")
    with running(folder / "kubeconfig", "--data-dir", folder, "--no-controllers"):
        yield folder


def test_an_address_that_leads_nowhere_from_elsewhere_is_warned_of(data: Path) -> None:
    """On standard error, so that the file is none the worse for it."""
    result = kubeconfig(data, "node-1")
    (cluster,) = json.loads(result.stdout)["clusters"]
    assert cluster["cluster"]["server"].startswith("https://127.0.0.1:")
    assert result.stderr.startswith("no other machine gets here by https://127.0.0.1:")
    assert "--host ADDRESS --expose" in result.stderr


def test_another_address_is_written_as_it_is_given(data: Path) -> None:
    """Without a warning, also if it is the end of a tunnel."""
    for url in ("https://10.0.0.5:6443", "https://127.0.0.1:7443"):
        result = kubeconfig(data, "node-1", "--server", url)
        (cluster,) = json.loads(result.stdout)["clusters"]
        assert (cluster["cluster"]["server"], result.stderr) == (url, "")


@pytest.mark.parametrize("url", ["10.0.0.5:6443", "http://a:1", "https://", "https://a:b"])
def test_what_is_no_address_is_refused(data: Path, url: str) -> None:
    """With one that would be."""
    result = kubeconfig(data, "node-1", "--server", url)
    assert result.exit_code == 2
    assert "is not like https://10.0.0.5:6443" in result.stderr


@pytest.mark.parametrize("name", ["node/1", "Node_1", "", "n" * 254])
def test_names_that_no_node_may_have_are_refused_with_the_rule(data: Path, name: str) -> None:
    """Nothing is printed that could be taken for a kubeconfig."""
    result = kubeconfig(data, name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"error: {name!r} cannot be the name of a node: " in result.stderr
