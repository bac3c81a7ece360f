"""`drayman simulate` compares policies on a trace."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.small_trace import write_trace
from drayman.cli.main import cli
from drayman.cli.simulate.plots import Bar, Line, bars, lines


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    write_trace(tmp_path / "traces")
    return tmp_path / "traces"


def simulate(trace: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["simulate", "--trace", str(trace), *options])


def test_all_policies_in_one_run(trace: Path) -> None:
    """A line for each, and what is not allocated by cause."""
    found = simulate(trace, "--seeds", "2")
    assert found.exit_code == 0, found.output
    rows = [line.split()[:3] for line in found.output.splitlines() if line.startswith("small")]
    assert rows == [["small", each, "2"] for each in ("best", "best-fit", "first-fit", "random")]
    assert "What is not allocated (best, small):" in found.output


def test_as_data(trace: Path) -> None:
    """Each replay with its curve, and the means."""
    found = json.loads(simulate(trace, "--policy", "best", "--seeds", "3", "-o", "json").output)
    assert (found["nodes"], found["gpus"], found["load"]) == (4, 20, 1.3)
    (summary,) = found["summaries"]
    shares = [replay["allocated"] for replay in found["replays"]]
    assert summary["allocated"] == pytest.approx(sum(shares) / 3)
    assert [replay["seed"] for replay in found["replays"]] == [0, 1, 2]
    assert all(replay["curve"] for replay in found["replays"])
    assert summary["costPerHour"] > 0


def test_seeds_can_be_continued(trace: Path) -> None:
    """Two runs of some seeds each are the run of all of them."""
    runs = [("--seeds", "2"), ("--seeds", "1", "--first-seed", "2"), ("--seeds", "3")]
    found = [
        json.loads(simulate(trace, "--policy", "best", "-o", "json", *each).output)["replays"]
        for each in runs
    ]
    assert found[0] + found[1] == found[2]


@pytest.mark.parametrize("arrivals", ["random", "recorded"])
def test_the_page_needs_nothing_else(trace: Path, tmp_path: Path, arrivals: str) -> None:
    """It has plots and a table, and names no address."""
    page = tmp_path / "report.html"
    found = simulate(trace, "--arrivals", arrivals, "--html", str(page))
    assert found.exit_code == 0, found.output
    text = page.read_text()
    assert text.count("<svg") >= 3
    assert text.count("<tr>") == 5
    assert not re.search(r"https?:|<script|<link|url\(", text)
    assert "NaN" not in text
    assert "inf" not in text


REFUSED = {
    "no such folder": (["--trace", "none"], "none: cannot be read"),
    "no such workload": (["--workload", "smal"], "has no workload smal; did you mean"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(trace: Path, options: list[str], message: str) -> None:
    """What is wrong is named, and nothing is replayed."""
    found = simulate(trace, *options)
    assert found.exit_code == 1
    assert message in found.output


@pytest.mark.parametrize("option", ["--seeds", "--first-seed", "--load"])
def test_what_is_recorded_is_not_random(trace: Path, option: str) -> None:
    """Options without effect are refused."""
    found = simulate(trace, "--arrivals", "recorded", option, "2")
    assert found.exit_code == 2
    assert f"{option} is about random arrivals" in found.output


def test_a_page_that_cannot_be_written(trace: Path) -> None:
    """It is reported before anything is replayed, which may take long: before a mistake in the trace, too."""
    (trace / "our_node_list.csv").write_text("sn\n")
    found = simulate(trace, "--html", str(trace / "none" / "page.html"))
    assert found.exit_code == 1
    assert "page.html: cannot be written" in found.output


def test_a_trace_without_times(trace: Path) -> None:
    """It cannot be replayed as recorded; the task is named."""
    path = trace / "our_pod_list_timeless.csv"
    path.write_text("name,cpu_milli,memory_mib,num_gpu\nlone,1,1,1\n")
    found = simulate(trace, "--workload", "timeless", "--arrivals", "recorded")
    assert found.exit_code == 1
    assert "workload timeless: task lone has no creation_time" in found.output


def test_plots_escape_names_and_label_axes() -> None:
    """Axes end at round numbers; names are text."""
    plot = lines([Line("<b>", "#000", ((0.0, 0.0), (130.0, 95.4)))], "load", "%")
    assert "&lt;b&gt;" in plot
    assert "<b>" not in plot
    assert ">100<" in plot
    assert ">150<" in plot
    stacked = bars([Bar("best", (("lost", "#111", 1.5), ("more", "#222", 2.5)))], "%")
    assert ">4.00<" in stacked
