"""The Workloads of a job that changes its size, and which of its pods may run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.kueue_workload import Admission, WorkloadStatus
from drayman.api.meta import Condition, ObjectMeta
from drayman.workloads.queued.slices import slices_of, to_be_let_go

REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
AT = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Made:
    """A Workload."""

    metadata: ObjectMeta
    status: WorkloadStatus


def made(name: str, *conditions: str, replaces: str = "", reason: str = "x") -> Made:
    annotations = {REPLACES: f"ns/{replaces}"} if replaces else {}
    found = tuple(
        Condition(type_=each, status="True", reason=reason, last_transition_time=AT)
        for each in conditions
    )
    admission = Admission(cluster_queue="q") if "QuotaReserved" in conditions else None
    return Made(
        ObjectMeta(namespace="ns", name=name, annotations=annotations),
        WorkloadStatus(conditions=found, admission=admission),
    )


RUNS = ("QuotaReserved", "Admitted")


@pytest.mark.parametrize(
    ("owned", "current", "growing", "replaced", "surplus"),
    [
        pytest.param([], "", "", "", "", id="nothing yet"),
        pytest.param([made("a")], "a", "", "", "", id="one that waits"),
        pytest.param([made("a", *RUNS)], "a", "", "", "", id="one that runs"),
        pytest.param(
            [made("a", *RUNS), made("b", replaces="a")], "a", "b", "", "", id="a larger one waits"
        ),
        pytest.param(
            [made("a", *RUNS), made("b", *RUNS, replaces="a")],
            *("b", "", "a", ""),
            id="the larger one was admitted",
        ),
        pytest.param(
            [made("a", *RUNS), made("b", "QuotaReserved", replaces="a")],
            *("a", "b", "", ""),
            id="the larger one waits for a check",
        ),
        pytest.param(
            [made("a", "Finished", reason="WorkloadSliceReplaced"), made("b", *RUNS, replaces="a")],
            *("b", "", "", ""),
            id="long ago",
        ),
        pytest.param(
            [made("a", *RUNS, "Evicted"), made("b", replaces="a")],
            *("a", "", "", "b"),
            id="evicted while a larger one waits",
        ),
        pytest.param(
            [made("a", *RUNS), made("b", replaces="a"), made("c", replaces="x")],
            *("a", "b", "", "c"),
            id="one for nobody",
        ),
    ],
)
def test_what_the_workloads_of_a_job_are(
    owned: list[Made], current: str, growing: str, replaced: str, surplus: str
) -> None:
    found = slices_of(owned)
    assert _name(found.current) == current
    assert _name(found.growing) == growing
    assert [_name(each) for each in found.replaced] == list(replaced)
    assert [_name(each) for each in found.surplus] == list(surplus)


def _name(each: Made | None) -> str:
    return "" if each is None else each.metadata.name


def pod(name: str, *, held: bool, phase: str = "Pending") -> Pod:
    gates: list[Any] = [{"name": "kueue.x-k8s.io/elastic-job"}] if held else []
    body = {"metadata": {"name": name}, "spec": {"schedulingGates": gates}}
    return convert(Pod, {**body, "status": {"phase": phase}})


@pytest.mark.parametrize(("count", "wanted"), [(0, ""), (1, ""), (2, "b"), (3, "bc"), (9, "bcd")])
def test_as_many_pods_are_let_go_as_there_is_quota_for(count: int, wanted: str) -> None:
    """One runs and one has ended: what has ended uses nothing."""
    pods = [pod("d", held=True), pod("c", held=True), pod("b", held=True), pod("a", held=False)]
    pods.append(pod("e", held=False, phase="Succeeded"))
    assert [each.metadata.name for each in to_be_let_go(pods, count)] == list(wanted)
