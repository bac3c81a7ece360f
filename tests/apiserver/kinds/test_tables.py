"""Cells of tables: ages, and the one word that says how something fares."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.circumstances import NOW, pod, resource_of
from drayman.apiserver.kinds.tables import age_of, human_duration, selector_cell
from drayman.apiserver.served.strategy import Object

MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (5 * MINUTE + 26, "5m26s"),
        (10 * MINUTE + 5, "10m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 7 * MINUTE, "3h7m"),
        (47 * HOUR, "47h"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (9 * DAY + 3 * HOUR, "9d"),
        (2 * YEAR + 4 * DAY, "2y4d"),
        (9 * YEAR, "9y"),
    ],
)
def test_durations_are_told_in_at_most_two_units(seconds: float, text: str) -> None:
    """The finer unit shows only while it matters."""
    assert human_duration(seconds) == text


@given(st.integers(min_value=0, max_value=100 * YEAR))
def test_durations_never_exceed_what_they_tell(seconds: int) -> None:
    """Read back, a text is the duration or a little less: nothing is rounded up."""
    units = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}
    total, digits = 0, ""
    for character in human_duration(seconds):
        if character in units:
            total, digits = total + int(digits) * units[character], ""
        else:
            digits += character
    assert 0 <= seconds - total <= max(1, seconds // 2)


def test_an_unknown_time_has_no_age() -> None:
    """What has no time, or none that can be read, is of unknown age."""
    assert age_of(None, NOW) == age_of("yesterday", NOW) == "<unknown>"


def cells(group: str, kind: str, obj: Object) -> dict[str, Any]:
    columns = resource_of(group, kind).columns
    return {column.name: column.cell(obj, NOW) for column in columns}


def running(**state: Any) -> Object:
    return {"name": "main", "ready": True, "restartCount": 0, "state": {"running": {}}, **state}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        pytest.param({"phase": "Pending"}, ("0/1", "Pending", "0"), id="nothing known"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [running()]},
            ("1/1", "Running", "0"),
            id="runs",
        ),
        pytest.param(
            {
                "phase": "Running",
                "containerStatuses": [
                    running(
                        ready=False,
                        restartCount=2,
                        state={"waiting": {"reason": "CrashLoopBackOff"}},
                        lastState={"terminated": {"finishedAt": "2026-01-02T02:46:05Z"}},
                    )
                ],
            },
            ("0/1", "CrashLoopBackOff", "2 (18m ago)"),
            id="restarts",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "containerStatuses": [running(state={"terminated": {"exitCode": 1, "signal": 9}})],
            },
            ("0/1", "Signal:9", "0"),
            id="killed",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
            },
            ("0/1", "SchedulingGated", "0"),
            id="gated",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "initContainerStatuses": [{"name": "i", "state": {"running": {}}}],
            },
            ("0/1", "Init:0/0", "0"),
            id="initialising",
        ),
        pytest.param(
            {
                "phase": "Succeeded",
                "containerStatuses": [
                    running(state={"terminated": {"exitCode": 0, "reason": "Completed"}})
                ],
            },
            ("0/1", "Completed", "0"),
            id="done",
        ),
    ],
)
def test_pods_tell_how_they_fare(status: Object, shown: tuple[str, str, str]) -> None:
    """The status cell is the most telling reason there is."""
    found = cells("", "Pod", {**pod(), "status": status})
    assert (found["Ready"], found["Status"], found["Restarts"]) == shown


def test_a_pod_that_is_going_is_terminating() -> None:
    """Deletion shows, unless the pod is done anyway."""
    going = {**pod(), "status": {"phase": "Running"}}
    going["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:35Z"
    assert cells("", "Pod", going)["Status"] == "Terminating"
    assert cells("", "Pod", {**going, "status": {"phase": "Failed"}})["Status"] == "Failed"


@pytest.mark.parametrize(
    ("node", "status", "roles"),
    [
        pytest.param({}, "Unknown", "<none>", id="bare"),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            "Ready",
            "<none>",
            id="ready",
        ),
        pytest.param(
            {
                "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "False"}]},
            },
            "NotReady,SchedulingDisabled",
            "worker",
            id="cordoned",
        ),
    ],
)
def test_nodes_tell_whether_they_take_pods(node: Object, status: str, roles: str) -> None:
    """Readiness and whether pods may come are one cell; roles come from labels."""
    found = cells("", "Node", node)
    assert (found["Status"], found["Roles"]) == (status, roles)


def test_selectors_are_shown_as_requests_take_them() -> None:
    """Labels and expressions are one list, in the order of their keys."""
    selector = {
        "matchLabels": {"b": "1"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "c", "operator": "DoesNotExist"},
        ],
    }
    cell = selector_cell("spec")
    assert cell({"spec": selector}, NOW) == "a in (x,y),b=1,!c"
    assert cell({"spec": {}}, NOW) == cell({}, NOW) == "<none>"


@pytest.mark.parametrize(
    ("claim", "state"),
    [
        pytest.param({}, "pending", id="new"),
        pytest.param({"status": {"allocation": {}}}, "allocated", id="allocated"),
        pytest.param(
            {"status": {"allocation": {}, "reservedFor": [{"uid": "u"}]}},
            "allocated,reserved",
            id="in use",
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}, "deleted", id="going"
        ),
    ],
)
def test_claims_tell_their_state(claim: Object, state: str) -> None:
    """The state of a claim is a list of words."""
    assert cells("resource.k8s.io", "ResourceClaim", claim)["State"] == state
