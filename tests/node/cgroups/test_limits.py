"""What the kernel is told of requests and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Pod, ResourceRequirements
from drayman.node.cgroups.limits import (
    Limits,
    container_limits,
    pod_limits,
    quota_of,
    shares_of,
    weight_of,
)

MI = 1024 * 1024


@dataclass(frozen=True)
class Case:
    says: str
    resources: dict[str, Any]
    want: Limits


CASES = [
    Case("nothing asked for is the least weight and no limit", {}, Limits(2)),
    Case("a CPU counts 1024", {"requests": {"cpu": "1"}}, Limits(1024)),
    Case("thousandths are rounded down", {"requests": {"cpu": "1m"}}, Limits(2)),
    Case(
        "a limit without a request is a request too",
        {"limits": {"cpu": "500m"}},
        Limits(512, 50_000),
    ),
    Case(
        "request and limit are told apart",
        {"requests": {"cpu": "250m"}, "limits": {"cpu": "2"}},
        Limits(256, 200_000),
    ),
    Case("a millisecond is the least time", {"limits": {"cpu": "1m"}}, Limits(2, 1_000)),
    Case("memory is in bytes", {"limits": {"memory": "64Mi"}}, Limits(2, None, 64 * MI)),
    Case("a limit of nothing is none", {"limits": {"memory": "0", "cpu": "0"}}, Limits(2)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_of_a_container(case: Case) -> None:
    """Each case says what holds."""
    assert container_limits(convert(ResourceRequirements, case.resources)) == case.want


def pod(*containers: dict[str, Any], **spec: Any) -> Pod:
    named = [{"name": f"c{number}", "resources": each} for number, each in enumerate(containers)]
    return convert(Pod, {"metadata": {"name": "p"}, "spec": {"containers": named, **spec}})


LIMITED = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "64Mi"}}


@dataclass(frozen=True)
class PodCase:
    says: str
    pod: Pod
    want: Limits


POD_CASES = [
    PodCase("containers add up", pod(LIMITED, LIMITED), Limits(204, 200_000, 128 * MI)),
    PodCase("one without limits leaves the pod without", pod(LIMITED, {}), Limits(102)),
    PodCase(
        "an init container that needs more raises the limit",
        pod(
            LIMITED,
            initContainers=[{"name": "i", "resources": {"limits": {"cpu": "3", "memory": "1Mi"}}}],
        ),
        Limits(102, 300_000, 64 * MI),
    ),
    PodCase(
        "what the pod as a whole says replaces the sum",
        pod({}, resources={"requests": {"cpu": "2"}, "limits": {"memory": "32Mi"}}),
        Limits(2048, None, 32 * MI),
    ),
]


@pytest.mark.parametrize("case", POD_CASES, ids=lambda case: case.says)
def test_of_a_pod(case: PodCase) -> None:
    """Each case says what holds."""
    assert pod_limits(case.pod) == case.want


def test_processes_are_limited_for_the_pod() -> None:
    """The node says how many processes a pod may have."""
    assert pod_limits(pod({}), pids=7).pids == 7


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_more_is_never_less(one: int, other: int) -> None:
    """Weights and quotas grow with what is asked for, and stay within what the kernel takes."""
    low, high = sorted((one, other))
    assert 2 <= shares_of(low) <= shares_of(high) <= 262_144
    assert 1 <= weight_of(shares_of(low)) <= weight_of(shares_of(high)) <= 10_000
    assert 1_000 <= quota_of(low) <= quota_of(high)


def test_both_ends_of_the_weights() -> None:
    """The ranges of both versions begin and end together."""
    assert (weight_of(2), weight_of(1024), weight_of(262_144)) == (1, 39, 10_000)
