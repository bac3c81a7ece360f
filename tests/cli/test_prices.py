"""`--prices`: the table of prices on the command line."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from drayman.apiserver.instance.folder import Folder, Record
from drayman.apiserver.instance.kubeconfig import kubeconfig
from drayman.cli.connecting import Where
from drayman.cli.main import cli
from drayman.cli.prices import load_prices, money
from drayman.placement.price_table import written
from drayman.placement.prices import NO_PRICES, CapacityType

COMMANDS = {
    "up": ["up", "--ephemeral", "--port", "0", "--profile", "example=1"],
    "scheduler": ["scheduler"],
    "plan": ["plan", "-f", "job.yaml"],
    "explain": ["explain", "--all"],
    "top owners": ["top", "owners"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a manifest, a table that is right and one that is wrong."""
    (tmp_path / "job.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    (tmp_path / "prices.yaml").write_text("instanceTypes:\n  a: 1.5\n")
    (tmp_path / "wrong.yaml").write_text("instanceTypes:\n  a: lots\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_that_is_wrong_ends_the_command(command: str, folder: Path) -> None:
    """Before anything else happens, with the file and the line; the environment may name it too."""
    for words, variables in (
        (["--prices", "wrong.yaml"], {}),
        ([], {"DRAYMAN_PRICES": "wrong.yaml"}),
    ):
        result = CliRunner(env=variables).invoke(cli, [*COMMANDS[command], *words])
        assert result.exit_code == (2 if command in ("plan", "explain") else 1)
        assert "error: wrong.yaml:2: a: 'lots' is not a price" in result.output


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_that_is_missing_ends_the_command(command: str, folder: Path) -> None:
    """With the name of the file."""
    result = CliRunner().invoke(cli, [*COMMANDS[command], "--prices", "none.yaml"])
    assert "error: none.yaml: cannot be read: no such file" in result.output


def test_a_table_is_read(folder: Path) -> None:
    """Without one there are none."""
    assert load_prices(None) is NO_PRICES
    assert load_prices("prices.yaml").types == {"a": dict.fromkeys(CapacityType, 1_500_000)}


def test_the_prices_of_drayman_up_are_known(folder: Path) -> None:
    """To questions about the cluster that it serves; a file that is named comes first."""
    table = load_prices("prices.yaml")
    place, other = Folder(folder / "data"), folder / "other"
    place.prepare()
    for path, url in ((place.kubeconfig, "https://127.0.0.1:1"), (other, "https://127.0.0.1:2")):
        path.write_bytes(kubeconfig(url, b"", "token", {}))
    record = Record(
        os.getpid(),
        "https://127.0.0.1:1",
        str(place.kubeconfig),
        "now",
        False,
        prices=written(table),
    )
    place.announce(record)
    here = Where(data_dir=place.path)
    assert load_prices(None, here) == table
    assert load_prices(None, Where(place.kubeconfig, place.path)) == table
    assert load_prices(None, Where(other, place.path)) is NO_PRICES
    (folder / "more.yaml").write_text("instanceTypes:\n  b: 2\n")
    assert load_prices("more.yaml", here).types.keys() == {"b"}
    place.announce(replace(record, prices=""))
    assert load_prices(None, here) is NO_PRICES


def test_amounts_are_legible() -> None:
    """Small ones have more digits."""
    said = [money(each, "USD") for each in (0, 0.001234, 0.5, 1, 1234.567)]
    assert said == ["0.00 USD", "0.0012 USD", "0.5000 USD", "1.00 USD", "1,234.57 USD"]
    assert money(2.5) == "2.50"
