"""Which cluster is meant."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from drayman.cli.cluster.options import data_dir_option
from drayman.cli.connecting import kubeconfig_of
from drayman.cli.errors import UserError
from drayman.cli.settings import Settings

FILE = Path("some-kubeconfig")


@pytest.fixture(autouse=True)
def nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No instance in the user's state directory, and no KUBECONFIG."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("DRAYMAN_DATA_DIR", raising=False)


def test_the_file_that_is_named_is_meant(tmp_path: Path) -> None:
    """Whatever else there is."""
    assert kubeconfig_of(FILE, tmp_path, "prod") == FILE


def test_a_context_is_one_of_kubectl(tmp_path: Path) -> None:
    """Unless a data directory is named, whose cluster then has to run."""
    assert kubeconfig_of(None, None, "prod") is None
    with pytest.raises(UserError, match="nothing runs on"):
        kubeconfig_of(None, tmp_path, "prod")


def test_kubeconfig_counts_where_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """And without it there is nothing to talk to."""
    with pytest.raises(UserError, match="nothing runs on"):
        kubeconfig_of(None, None)
    monkeypatch.setenv("KUBECONFIG", "somewhere")
    assert kubeconfig_of(None, None) is None


@click.command()
@data_dir_option
def which(data_dir: Path | None) -> None:
    click.echo(str(kubeconfig_of(None, data_dir)))


def test_a_plugin_talks_to_the_cluster_of_kubectl(tmp_path: Path) -> None:
    """A data directory counts if it is named on the command line, not if the environment says where ours is."""
    runner, plugin = CliRunner(), Settings(as_plugin=True)
    assert runner.invoke(which, [], obj=plugin).stdout == "None\n"
    here = {"DRAYMAN_DATA_DIR": str(tmp_path)}
    assert runner.invoke(which, [], obj=plugin, env=here).stdout == "None\n"
    named = runner.invoke(which, ["--data-dir", str(tmp_path)], obj=plugin)
    assert "nothing runs on" in named.stderr
