"""`drayman demo` tells the truth about the pods of the examples."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from drayman.cli.demo.staging import manifests
from drayman.cli.main import cli

ROOT = Path(__file__).parent.parent.parent


@cache
def demo(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["demo", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def pods() -> dict[str, dict[str, Any]]:
    """What became of each pod, by name."""
    return {pod["name"]: pod for pod in yaml.safe_load(demo("-o", "yaml"))["pods"]}


def devices(pod: dict[str, Any]) -> list[str]:
    return [entry["device"] for entry in pod["devices"]]


def test_all_pods_run_but_the_one_that_cannot(pods: dict[str, dict[str, Any]]) -> None:
    """Six pods run where their hardware is."""
    assert {name: pod["phase"] for name, pod in pods.items()} == {
        "trainer": "Running",
        "notebooks": "Running",
        "serve-a": "Running",
        "serve-b": "Running",
        "tuner": "Running",
        "classic": "Running",
        "waits": "Pending",
    }


def test_gpu_and_nic_are_a_pair(pods: dict[str, dict[str, Any]]) -> None:
    """The first pod gets a GPU and the NIC of its PCIe root."""
    pair = {entry["request"]: entry["device"] for entry in pods["trainer"]["devices"]}
    assert pair == {"gpu": "gpu-0", "nic": "pci-0000-18-00-0"}


def test_mig_slices_have_one_parent(pods: dict[str, dict[str, Any]]) -> None:
    """Three partitions of one GPU."""
    assert len({name.split("-mig-")[0] for name in devices(pods["notebooks"])}) == 1
    assert len(devices(pods["notebooks"])) == 3


def test_two_pods_share_a_gpu(pods: dict[str, dict[str, Any]]) -> None:
    """By capacity, so that both are on the same one."""
    assert devices(pods["serve-a"]) == devices(pods["serve-b"])


def test_the_second_choice_is_told(pods: dict[str, dict[str, Any]]) -> None:
    """No node has a large GPU, so it is two halves."""
    assert [entry["request"] for entry in pods["tuner"]["devices"]] == ["gpu/halves"] * 2


def test_extended_resources_get_devices(pods: dict[str, dict[str, Any]]) -> None:
    """Two whole GPUs that nobody else has."""
    held = devices(pods["classic"])
    assert len(held) == 2
    assert not {*held} & {*devices(pods["trainer"])}


def test_the_last_can_never_run(pods: dict[str, dict[str, Any]]) -> None:
    """It is explained, and what would help was tried; freeing devices is not among it."""
    why = pods["waits"]["explanation"]
    assert (why["headline"]["reason"], why["headline"]["kind"]) == ("ConstraintUnmeetable", "never")
    assert "no two agree in resource.kubernetes.io/pcieRoot" in why["headline"]["sentence"]
    remedies = why["remedies"]
    assert any("numaNode instead of pcieRoot" in remedy["sentence"] for remedy in remedies)
    assert all(op["verb"] == "patch" for remedy in remedies for op in remedy["operations"])
    held = {
        f"{entry['driver']}/{entry['pool']}/{entry['device']}"
        for name in ("trainer", "classic", "notebooks", "tuner")
        for entry in pods[name]["devices"]
    }
    assert all(held.isdisjoint(remedy["devices"]) for remedy in remedies)


def test_text_fits_80_columns_and_marks_what_was_chosen() -> None:
    """The matrix has a row for every device; chosen ones carry the example's number and brackets."""
    lines = demo().splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("1 GPU0") and "NV18" in line for line in lines)
    assert any(line.startswith("1 NIC0") and "[PXB]" in line for line in lines)
    assert sum(line.startswith("5 GPU") for line in lines) == 2


def test_text_has_no_colour_codes_where_no_terminal_is() -> None:
    """Plain text through a pipe."""
    assert "\x1b" not in demo()


def test_the_manifests_are_the_examples() -> None:
    """What comes with the package is what lies in the repository."""
    folder = ROOT / "src" / "drayman" / "cli" / "demo" / "manifests"
    packed = {path.name: path.read_text() for path in folder.glob("*.yaml")}
    assert packed == {path.name: path.read_text() for path in (ROOT / "examples").glob("*.yaml")}
    assert [manifest.name for manifest in manifests()] == sorted(packed)


def without_suffixes(text: str) -> list[str]:
    """The lines of a text, with the ends of generated names made equal."""
    return re.sub(
        r"\b(waits|trainer|classic)(-[a-z]+)+-[a-z0-9]{5}\b", r"\1\2-xxxxx", text
    ).splitlines()


def test_the_readme_shows_what_is_printed() -> None:
    """Every line of the README's excerpt is a line of the demo."""
    excerpt = without_suffixes((ROOT / "README.md").read_text().split("```")[3].strip("\n"))
    assert len(excerpt) > 30
    assert set(excerpt) <= {*without_suffixes(demo()), ""}
