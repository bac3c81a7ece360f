"""Which cluster is meant."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from drayman.apiserver.instance.folder import Folder, Record
from drayman.cli.connecting import Where
from drayman.cli.errors import in_options
from drayman.cli.main import cli
from drayman.cli.options import data_dir_option
from drayman.cli.settings import Settings
from drayman.questions.errors import QuestionError


def kubeconfig(path: Path, name: str, *others: str) -> Path:
    """A file with a context of that name, which is its current one, and perhaps with others."""
    names = (name, *others)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": n, "cluster": {"server": f"https://{n}.invalid"}} for n in names],
        "contexts": [{"name": n, "context": {"cluster": n}} for n in names],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def run_embedded(folder: Path, name: str) -> None:
    """As if `drayman up` ran there: the process that says so is this one."""
    found = Folder(folder)
    found.prepare()
    path = kubeconfig(found.kubeconfig, name)
    found.announce(Record(os.getpid(), f"https://{name}.invalid", str(path), "now", durable=False))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any cluster, and an environment that names none."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "DRAYMAN_DATA_DIR", "XDG_STATE_HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


SOURCES = ("file", "directory", "variable", "embedded", "home")
"""What can name a cluster, the strongest first."""


@pytest.mark.parametrize(
    "there",
    [
        subset
        for size in range(1, len(SOURCES) + 1)
        for subset in itertools.combinations(SOURCES, size)
    ],
    ids="+".join,
)
def test_the_strongest_of_those_that_there_are_is_meant(
    there: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--kubeconfig, --data-dir, KUBECONFIG, the embedded cluster that runs, ~/.kube/config: in this order."""
    named = directory = None
    if "file" in there:
        named = kubeconfig(home / "named", "file")
    if "directory" in there:
        directory = home / "directory"
        run_embedded(directory, "directory")
    if "variable" in there:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "exported", "variable")))
    if "embedded" in there:
        run_embedded(home / ".local/state/drayman", "embedded")
    if "home" in there:
        kubeconfig(home / ".kube/config", "home")
    assert Where(named, directory).connection().server == f"https://{there[0]}.invalid"


def test_a_context_is_one_of_kubectl(home: Path) -> None:
    """Whatever runs here: the file of an embedded cluster has but one."""
    run_embedded(home / ".local/state/drayman", "embedded")
    kubeconfig(home / ".kube/config", "home", "prod")
    assert str(Where(context="prod").connection()) == "context prod (https://prod.invalid)"
    with pytest.raises(QuestionError, match="has no context 'test'; it has: home, prod"):
        Where(context="test").connection()


def test_the_embedded_cluster_is_called_that(home: Path) -> None:
    """Others have the name of their context."""
    run_embedded(home / "data", "drayman")
    found = Where(data_dir=home / "data").connection()
    assert str(found) == "the embedded cluster (https://drayman.invalid)"


def test_the_environment_says_where_the_embedded_cluster_is(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DRAYMAN_DATA_DIR stands in for the default directory, and no more: KUBECONFIG is stronger."""
    run_embedded(home / "data", "embedded")
    monkeypatch.setenv("DRAYMAN_DATA_DIR", str(home / "data"))
    assert Where().connection().server == "https://embedded.invalid"
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "exported", "variable")))
    assert Where().connection().server == "https://variable.invalid"


MISSING = [
    ("a directory where nothing runs", {"data_dir": Path("nowhere")}, {}, "nothing runs on"),
    ("nothing at all", {}, {}, "no cluster to talk to: .* start one with: drayman up"),
    ("a context and no file", {"context": "prod"}, {}, "context 'prod': there is no kubeconfig"),
    ("KUBECONFIG", {}, {"KUBECONFIG": "/nowhere"}, "KUBECONFIG is /nowhere, and there is no such"),
]


@pytest.mark.parametrize(
    ("given", "environment", "sentence"), [c[1:] for c in MISSING], ids=[c[0] for c in MISSING]
)
def test_what_leads_nowhere_is_said(
    given: dict[str, Path],
    environment: dict[str, str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What names a cluster that is not there is no reason to take another one."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(QuestionError) as error:
        Where(**given).connection()
    assert re.search(sentence, in_options(error.value))


@click.command()
@data_dir_option
def which(data_dir: Path | None) -> None:
    click.echo(Where(data_dir=data_dir).connection().server)


def test_a_plugin_talks_to_the_cluster_of_kubectl(home: Path) -> None:
    """A data directory counts if it is named on the command line, not if the environment says where ours is."""
    run_embedded(home / "data", "embedded")
    kubeconfig(home / ".kube/config", "home")
    runner, plugin = CliRunner(), Settings(as_plugin=True)
    here = {"DRAYMAN_DATA_DIR": str(home / "data")}
    assert runner.invoke(which, [], obj=plugin, env=here).stdout == "https://home.invalid\n"
    assert runner.invoke(which, [], env=here).stdout == "https://embedded.invalid\n"
    named = runner.invoke(which, ["--data-dir", str(home / "data")], obj=plugin)
    assert named.stdout == "https://embedded.invalid\n"


def test_status_says_if_other_commands_mean_another(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own cluster in the first line, and the one of KUBECONFIG in a note."""
    run_embedded(home / ".local/state/drayman", "embedded")
    alone = CliRunner().invoke(cli, ["status"])
    assert alone.stdout.splitlines()[0].split(maxsplit=1)[1] == (
        "the embedded cluster (https://embedded.invalid)"
    )
    assert alone.stderr == ""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(home / "exported", "prod")))
    beside = CliRunner().invoke(cli, ["status"])
    assert beside.stdout == alone.stdout
    assert beside.stderr == "note: other commands talk to context prod (https://prod.invalid)\n"
