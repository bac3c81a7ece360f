"""Prices in questions from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from drayman import Cluster, QuestionError, plan
from drayman.simulate.snapshot import snapshot
from simulate.cluster import cluster, node

PRICES = "currency: EUR\ninstanceTypes: {big: 12}"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: planned}
spec:
  containers: [{name: main, image: app}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A node of a type that costs something, in a file."""
    labels = {"node.kubernetes.io/instance-type": "big"}
    path = tmp_path / "cluster.yaml"
    world = cluster({"a": 4}, nodes=(node("a", labels=labels),))
    path.write_bytes(b"".join(snapshot(world)))
    return path


def test_a_plan_has_the_cost_by_the_given_table(saved: Path) -> None:
    """As text; without it, none."""
    with Cluster.from_snapshot(saved, prices=PRICES) as priced:
        cost = plan(priced, POD).cost
    assert cost is not None
    assert (cost.per_hour, cost.currency) == (3.0, "EUR")
    with Cluster.from_snapshot(saved) as unpriced:
        assert plan(unpriced, POD).cost is None


def test_a_table_that_is_wrong_is_refused(saved: Path) -> None:
    """In a sentence that says where."""
    with pytest.raises(QuestionError, match="<prices>:1: instanceTypes has no prices"):
        Cluster.from_snapshot(saved, prices="instanceTypes: {}")
    with pytest.raises(QuestionError, match="<prices>:1: instanceTypes must be a mapping"):
        Cluster.connect(saved, prices="currency: EUR")
    with pytest.raises(TypeError, match=r"prices must be YAML or JSON text.*read_text"):
        Cluster.connect(prices=saved)  # type: ignore[arg-type]
