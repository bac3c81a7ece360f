"""Drivers that run beside a node, as `--driver` names them."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest
from click.testing import CliRunner

from drayman.cli.errors import UserError
from drayman.cli.main import cli
from drayman.cli.node_agent import find_drivers, running_on
from drayman.drivers.kit.command import own_options
from drayman.drivers.kit.model import Hardware
from drayman.drivers.known import DRIVERS, find_driver


def test_options_of_a_driver_follow_its_name() -> None:
    """Each word of `--driver` may have the options that `drayman driver run` has for the driver."""
    counts = []
    for given in ("gpu.example.com", "gpu.example.com --gpus 3"):
        (driver,) = find_drivers([given], "node-1")
        found = driver.discover()
        assert isinstance(found, Hardware)
        counts.append(len(list(found.devices)))
    assert counts == [8, 3]


def test_a_driver_that_is_named_twice_is_refused() -> None:
    """By the option that names it, whatever options of its own and whichever of its names it has there."""
    again = "drayman.drivers.example.drivers:ExampleGpuDriver --gpus 3"
    with pytest.raises(UserError, match=r"^--driver names gpu\.example\.com more than once"):
        find_drivers(["gpu.example.com", "net.example.com", again], "node-1")


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("1.2.3", "--address: '1.2.3' is not an IP address"),
        ("203.0.113.7", "--address: this machine cannot serve at 203.0.113.7: "),
    ],
)
def test_an_address_of_another_machine_is_refused(
    address: str, problem: str, tmp_path: Path
) -> None:
    """Before anything else: a node that ends again at once must not be seen as ready by the scheduler."""
    words = ["node", "run", "--address", address, "--data-dir", str(tmp_path)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 1
    assert problem in done.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("gpu.example.com --gpu 3", "--driver gpu.example.com --gpu 3: No such option '--gpu'"),
        ("gpu.example.com --gpus many", "'many' is not a valid integer"),
        ("gpu.example.com 'x", "No closing quotation"),
        ("gpu.exampel.com", "there is no driver 'gpu.exampel.com'"),
        ("", "there is no driver ''"),
    ],
)
def test_what_cannot_be_read_is_named(given: str, said: str) -> None:
    """A mistake in the name or the options of a driver is one line."""
    with pytest.raises(UserError) as caught:
        find_drivers([given], "node-1")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, ""), (1, "; 1 container runs on"), (2, "; 2 containers run on")],
)
def test_what_runs_on_is_counted(count: int, words: str) -> None:
    """In the singular, too."""
    assert running_on(count) == words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "test it:  python -m pytest\n"),
        (("--to", "my drivers"), "test it:  cd 'my drivers' && python -m pytest\n"),
    ],
)
def test_a_new_driver_says_how_to_test_it(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One goes only to a folder where one is not yet."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["driver", "new", "sensor.example.com", *words])
    assert said in done.stdout
    place = "sensor_driver:SensorDriver"
    assert f"classes:  drayman driver classes {place} | kubectl apply -f -\n" in done.stdout
    assert f"run it:   drayman driver run {place} --node NAME\n" in done.stdout
    assert "--node-dir DIR" in done.stdout


def test_a_new_driver_needs_a_domain(tmp_path: Path) -> None:
    """Kubernetes takes it without one, and so would the driver of somebody else. Nothing is written."""
    done = CliRunner().invoke(cli, ["driver", "new", "sensor", "--to", str(tmp_path)])
    assert done.exit_code == 1
    assert "error: 'sensor' has no domain" in done.stderr
    assert "call it sensor.example.com\n" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_drivers_that_come_along_are_listed() -> None:
    """All that `driver run` finds by name, each with what it offers; as data, too."""
    lines = CliRunner().invoke(cli, ["driver", "list"]).stdout.splitlines()
    assert [each.split()[0] for each in lines] == ["NAME", *DRIVERS]
    done = CliRunner().invoke(cli, ["driver", "list", "-o", "json"])
    rows = json.loads(done.stdout)["drivers"]
    assert rows[3]["name"] == "gpu.nvidia.com"
    assert all(each["devices"] for each in rows)


@pytest.mark.parametrize("name", [name for name, each in DRIVERS.items() if each.examples])
def test_examples_of_a_drivers_own_options_are_ones_that_it_has(name: str) -> None:
    """One is shown for each, after those of any driver."""
    shown = CliRunner().invoke(cli, ["driver", "run", name, "--help"]).stdout
    for each in DRIVERS[name].examples:
        own_options(find_driver(name), each.split())
        assert f"drayman driver run {name} --node node-1 {each}\n" in shown


def test_the_help_of_a_node_names_one_default_cluster() -> None:
    """That of the data directory; the rule of commands that only ask, which KUBECONFIG decides first, is not its own."""
    text = " ".join(CliRunner().invoke(cli, ["node", "run", "--help"]).stdout.split())
    assert "Default: the cluster of the data directory; KUBECONFIG does not count." in text
    assert "~/.kube/config" not in text


def test_a_node_may_have_as_many_files_open_as_the_system_allows(tmp_path: Path) -> None:
    """Two hundred commands in containers would use up what many systems begin with."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1] - 1, before[1]))
    try:
        words = ["node", "run", "--kubeconfig", str(tmp_path / "none"), "--root-dir", str(tmp_path)]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code != 0
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
