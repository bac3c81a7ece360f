"""Whether a scheduler runs for a pod, by the Leases of schedulers and by what they have written about pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.times import timestamp_at
from drayman.api.workloads import Lease
from drayman.placement.schedulers import Leases, Schedulers, lease_of

NOW = 1_900_000_000.0


def lease(name: str, renewed: float, holder: str = "host-1") -> Lease:
    """A Lease of 15 s that was renewed so many seconds ago."""
    spec = {"leaseDurationSeconds": 15, "renewTime": timestamp_at(NOW - renewed)}
    return convert(Lease, {"metadata": {"name": name}, "spec": {**spec, "holderIdentity": holder}})


def pod(
    created: float,
    evaluated: float | None = None,
    status: str = "False",
    reason: str = "Unschedulable",
    **spec: Any,
) -> Pod:
    """A pod that was created, and evaluated by a scheduler, so many seconds ago."""
    conditions = []
    if evaluated is not None:
        at = timestamp_at(NOW - evaluated)
        conditions = [{"type": "PodScheduled", "status": status, "lastTransitionTime": at, "reason": reason}]  # fmt: skip
    made = {"metadata": {"name": "p", "creationTimestamp": timestamp_at(NOW - created)}}
    return convert(Pod, {**made, "spec": spec, "status": {"conditions": conditions}})


@dataclass(frozen=True)
class Case:
    """Leases, the pod in question, other pods, and whether its scheduler is known not to run."""

    leases: tuple[Lease, ...]
    asked: Pod
    others: tuple[Pod, ...] = ()
    is_absent: bool = False


OLD = pod(35)
CASES = {
    "no lease, and the pod waits": Case((), OLD, is_absent=True),
    "no lease, and the pod is new": Case((), pod(2)),
    "no lease, and another pod was placed since": Case(
        (), OLD, (pod(60, 10, "True", nodeName="n"),)
    ),
    "no lease, and the last placement is older": Case((), OLD, (pod(90, 60, nodeName="n"),), True),
    "no lease, and the pod was refused": Case((), pod(35, 34)),
    "no lease, and the server wrote that the pod was gated": Case(
        (), pod(35, 35, reason="SchedulingGated"), is_absent=True
    ),
    "no lease, and a scheduler of another name placed a pod": Case(
        (), OLD, (pod(60, 10, "True", nodeName="n", schedulerName="other"),), True
    ),
    "a pod that is gated": Case((), pod(35, schedulingGates=[{"name": "g"}])),
    "a pod with a node": Case((), pod(35, nodeName="n")),
    "kube-scheduler renews": Case((lease("kube-scheduler", 3),), OLD),
    "drayman renews": Case((lease("drayman-scheduler-default-scheduler", 3),), OLD),
    "drayman renews for another name": Case((lease("drayman-scheduler", 3),), OLD, is_absent=True),
    "a pod of that other name": Case(
        (lease("drayman-scheduler", 3),), pod(35, schedulerName="drayman")
    ),
    "kube-scheduler does not serve drayman's name": Case(
        (lease("kube-scheduler", 3),), pod(35, schedulerName="drayman"), is_absent=True
    ),
    "a scheduler of one's own renews": Case(
        (lease(lease_of("mine"), 3),), pod(35, schedulerName="mine")
    ),
    "KAI's scheduler may hold a lease elsewhere": Case((), pod(35, schedulerName="kai-scheduler")),
    "drayman served KAI's name": Case(
        (lease(lease_of("kai-scheduler"), 300),),
        pod(35, schedulerName="kai-scheduler"),
        is_absent=True,
    ),
    "the clock of the scheduler is 20 s behind": Case((lease("kube-scheduler", 23),), OLD),
    "a lease that ended": Case((lease("kube-scheduler", 300),), OLD, is_absent=True),
    "a lease that was given up": Case((lease("kube-scheduler", 1, ""),), OLD, is_absent=True),
    "one of two leases is renewed": Case(
        (lease("kube-scheduler", 300), lease("drayman-scheduler-default-scheduler", 3)), OLD
    ),
    "the pod was refused before the lease ended": Case(
        (lease("kube-scheduler", 300),), pod(600, 400), is_absent=True
    ),
    "a scheduler without a lease works since": Case(
        (lease("kube-scheduler", 300),), OLD, (pod(60, 10, "True", nodeName="n"),)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_whether_a_scheduler_runs(name: str) -> None:
    """A scheduler is absent only if no Lease for the name is renewed and no pod was evaluated since."""
    case = CASES[name]
    found = Schedulers(case.leases, (case.asked, *case.others), NOW).absent_for(case.asked)
    assert (found is not None) is case.is_absent


def test_an_absent_scheduler_is_named_with_its_last_lease() -> None:
    """Of several Leases that have ended, the one that ended last is named."""
    leases = (lease("kube-scheduler", 900), lease("drayman-scheduler-default-scheduler", 300))
    found = Schedulers(leases, (), NOW).absent_for(OLD)
    assert found is not None
    assert found.name == "default-scheduler"
    assert found.lease is leases[1]


@given(
    renewed=st.floats(0, 15),
    created=st.floats(0, 1e6),
    evaluated=st.none() | st.floats(0, 1e6),
    others=st.lists(st.builds(pod, st.floats(0, 1e6), st.none() | st.floats(0, 1e6)), max_size=3),
)
def test_a_scheduler_that_renews_its_lease_is_never_absent(
    renewed: float, created: float, evaluated: float | None, others: list[Pod]
) -> None:
    """Pods do not matter as long as the Lease is renewed."""
    leases = (lease("kube-scheduler", renewed),)
    asked = pod(created, evaluated)
    assert Schedulers(leases, (asked, *others), NOW).absent_for(asked) is None
    assert Leases(leases, NOW).holder("default-scheduler") == "host-1"
