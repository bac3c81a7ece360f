"""`drayman demo` tells the truth about its three claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from drayman.cli.main import cli

README = Path(__file__).parent.parent.parent / "README.md"


def demo(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["demo", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def claims() -> dict[str, dict[str, Any]]:
    """What became of each claim, by name."""
    return {claim["name"]: claim for claim in yaml.safe_load(demo("-o", "yaml"))["claims"]}


def test_gpu_and_nic_are_a_pair(claims: dict[str, dict[str, Any]]) -> None:
    """The first claim gets a GPU and the NIC of its PCIe root."""
    pair = {entry["request"]: entry["device"] for entry in claims["gpu-with-nic"]["devices"]}
    assert pair == {"gpu": "gpu-0", "nic": "pci-0000-18-00-0"}


def test_four_gpus_are_taken_from_one_numa_node(claims: dict[str, dict[str, Any]]) -> None:
    """Nobody asked for it: the best policy keeps them together, on the socket that is still whole."""
    devices = [entry["device"] for entry in claims["four-gpus"]["devices"]]
    assert devices == ["gpu-4", "gpu-5", "gpu-6", "gpu-7"]


def test_two_pairs_on_one_root_can_never_fit(claims: dict[str, dict[str, Any]]) -> None:
    """The third claim is refused for good, and freeing devices is not among what would help."""
    refused = claims["two-pairs-on-one-root"]
    assert refused["allocated"] is False
    assert refused["kind"] == "never"
    assert refused["rejections"]
    changes = [remedy["change"] for remedy in refused["remedies"]]
    assert "match numaNode instead of pcieRoot" in changes
    assert not any("gives back" in change or "has gone" in change for change in changes)


def test_remedies_name_devices_that_are_free(claims: dict[str, dict[str, Any]]) -> None:
    """What a remedy would give is held by nobody else, and is what the changed claim asks for."""
    held = {
        entry["device"]
        for name in ("gpu-with-nic", "four-gpus")
        for entry in claims[name]["devices"]
    }
    for remedy in claims["two-pairs-on-one-root"]["remedies"]:
        assert remedy["devices"]
        assert held.isdisjoint(remedy["devices"])


def test_text_fits_80_columns_and_marks_what_was_chosen() -> None:
    """The matrix has a row for every device; chosen ones carry the claim's number and brackets."""
    lines = demo().splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("1 GPU0") and "NV18" in line for line in lines)
    assert any(line.startswith("1 NIC0") and "[PXB]" in line for line in lines)
    assert any(line.startswith("2 GPU4") and line.count("[NV18]") == 3 for line in lines)
    assert any(line.startswith("  GPU1") for line in lines)


def test_text_has_no_colour_codes_where_no_terminal_is() -> None:
    """Plain text through a pipe."""
    assert "\x1b" not in demo()


def test_the_readme_shows_what_is_printed() -> None:
    """Every line of the README's excerpt is a line of the demo."""
    excerpt = README.read_text().split("```")[3].strip("\n").splitlines()
    assert len(excerpt) > 30
    assert set(excerpt) <= {*demo().splitlines(), ""}
