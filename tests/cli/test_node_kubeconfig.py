"""`drayman node kubeconfig`: for which names, and with which address."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from apiserver.e2e.driving import running
from drayman.api.formats import dns_subdomain_problems
from drayman.cli.main import cli
from drayman.cluster import HttpClient
from drayman.cluster.resources import NODES
from drayman.node.reporting import SIMULATED


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


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("node/1", "node-1"),
        ("Node_1", "node-1"),
        ("_Rack 4-.Node.", "rack-4.node"),
        ("", "node-1"),
        ("ß", "node-1"),
        ("n" * 254, "n" * 253),
    ],
)
def test_names_that_no_node_may_have_are_refused_with_one_that_it_may(
    data: Path, name: str, near: str
) -> None:
    """In a line. Nothing is printed that could be taken for a kubeconfig."""
    result = kubeconfig(data, name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"error: {name!r} cannot be the name of a node: " in result.stderr
    assert result.stderr.endswith(f", such as {near}\n")
    assert dns_subdomain_problems(near) == ()


def test_a_simulated_node_is_nobodys_to_run(data: Path) -> None:
    """Credentials for it would be of no use: `node run` refuses it, in the same words."""

    async def simulate() -> None:
        metadata = {"name": "dgx-0", "labels": {SIMULATED: "true"}}
        async with HttpClient.from_environment(data / "kubeconfig") as client:
            await client.create(NODES.as_values(), {"metadata": metadata})

    asyncio.run(simulate())
    result = kubeconfig(data, "dgx-0")
    said = "error: node dgx-0 is simulated; choose another name, or delete it first\n"
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", said)


def test_a_file_of_it_is_for_its_owner_only(data: Path, tmp_path: Path) -> None:
    """It is what would have been printed, but for the moment at which it was made."""
    path = tmp_path / "node-1.conf"
    result = kubeconfig(data, "node-1", "--to", str(path))
    assert result.stdout == f"wrote {path}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["current-context"] == "drayman"


def test_a_file_that_cannot_be_written_is_named(data: Path, tmp_path: Path) -> None:
    """With the reason."""
    path = tmp_path / "nowhere" / "node-1.conf"
    result = kubeconfig(data, "node-1", "--to", str(path))
    assert result.exit_code == 1
    assert f"error: {path}: no such file or directory" in result.stderr
