"""Which pods preemption should spare because of a disruption budget."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.workloads import PodDisruptionBudget
from drayman.cluster.cache import Cache
from drayman.placement.pauses import completed
from drayman.scheduler.protection import Budgets

INVALID = {"matchExpressions": [{"key": "app", "operator": "Between"}]}
CASES: dict[str, tuple[dict[str, Any] | None, dict[str, str], bool]] = {
    "labels that match": ({"matchLabels": {"app": "db"}}, {"app": "db"}, True),
    "labels that do not": ({"matchLabels": {"app": "db"}}, {"app": "web"}, False),
    "an empty selector": ({}, {"app": "db"}, True),
    "an empty selector, and no labels": ({}, {}, True),
    "no selector": (None, {"app": "db"}, False),
    "a selector that makes no sense": (INVALID, {"app": "db"}, False),
}


@pytest.mark.parametrize(("selector", "labels", "is_covered"), CASES.values(), ids=CASES)
def test_which_pods_a_budget_covers(
    selector: dict[str, Any] | None, labels: dict[str, str], is_covered: bool
) -> None:
    """Those that its selector matches, as for an eviction: all of them if it is empty."""
    budgets: Cache[PodDisruptionBudget] = Cache({})
    metadata = {"name": "b", "namespace": "default", "uid": "b"}
    spec = {} if selector is None else {"selector": selector}
    budget = convert(PodDisruptionBudget, {"metadata": metadata, "spec": spec})
    budgets.put(("default", "b"), budget)
    about = {"name": "p", "namespace": "default", "uid": "p", "labels": labels}
    pod = convert(Pod, {"metadata": about})
    assert bool(completed(Budgets(budgets).asked().violated_by([pod]))) == is_covered
