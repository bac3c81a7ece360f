"""Throughput and latency as scheduler_perf takes them."""

from __future__ import annotations

import pytest

from drayman.cli.bench.command import scene_line
from drayman.cli.bench.measuring import Measured, percentile, throughput


@pytest.mark.parametrize(
    ("bound", "samples"),
    [
        ([], []),
        ([0.1, 0.2, 0.25], []),
        ([0.5, 1.1, 1.2, 1.3, 2.5, 2.6, 3.9], [3.0, 2.0]),
        ([0.5, 1.1, 3.1, 3.2, 4.5], [1.0, 1.0, 1.0]),
    ],
    ids=["nothing", "shorter than a sample", "first and last left out", "empty seconds are merged"],
)
def test_throughput(bound: list[float], samples: list[float]) -> None:
    """One value a second; the first and the broken last one are left out, empty ones go with the next."""
    assert throughput(bound, 0.0) == samples


@pytest.mark.parametrize(("share", "value"), [(50, 2.0), (75, 3.0), (99, 4.0), (1, 1.0)], ids=str)
def test_percentile(share: float, value: float) -> None:
    """The smallest value that so many percent do not exceed."""
    assert percentile([4.0, 1.0, 3.0, 2.0], share) == value


def test_latency_is_from_creation_to_binding() -> None:
    """Each pod by its own times; the average is over the whole run."""
    measured = Measured(10.0)
    measured.created.update(a=10.0, b=10.5)
    measured.bind("a", 10.25)
    measured.bind("b", 12.0)
    summary = measured.summary()
    assert (summary["pods"], summary["seconds"], summary["average"]) == (2, 2.0, 1.0)
    assert (summary["latency_p50"], summary["latency_p99"]) == (0.25, 1.5)


@pytest.mark.parametrize(
    ("nodes", "compared"),
    [(500, "(goal 5 s, KAI publishes 49 s)"), (20, "(on 500: goal 5 s, KAI publishes 49 s)")],
)
def test_a_scene_is_compared_with_what_holds_for_500_nodes(nodes: int, compared: str) -> None:
    """On fewer nodes it is no comparison, and the line says so. It fits on a terminal whatever the scene is called."""
    figure = {"scene": "defragmentation", "pods": 12000, "seconds": 299.9994, "nodes": nodes}
    line = scene_line({**figure, "bar": 5.0, "published": 49.0})
    assert line == f"defragmentation 12000 pods   299.999 s  {compared}"
    assert len(line) <= 80
