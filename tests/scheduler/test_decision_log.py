"""Decisions in the log: one line each, and not too many of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.placement.world import Objects, World
from drayman.scheduler.decision_log import DecisionLog, Rate


@given(st.lists(st.integers(0, 400)), st.integers(1, 5))
def test_no_second_has_more_lines_than_are_allowed(pauses: list[int], most: int) -> None:
    """Seconds count from the first line in them; a line after a quiet second is always written."""
    now = 0.0
    rate = Rate(lambda: now, most)
    written: list[float] = []
    for pause in pauses:
        now += pause / 1024  # which floats add without an error
        if rate.admits():
            written.append(now)
    for at in written:
        assert sum(at <= other < at + 1 for other in written) <= 2 * most
    now += 1.0
    assert rate.admits()


BY_NAME = [{"name": "a", "resourceClaimName": "one"}, {"name": "b", "resourceClaimName": "two"}]
BY_TEMPLATE = [{"name": "a", "resourceClaimTemplateName": "gpu"}]
MADE = [{"name": "a", "resourceClaimName": "p-a-x"}]
NEEDS_NONE = [{"name": "a"}]
CLAIMS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], str]] = {
    "none": ([], [], ""),
    "by name": (BY_NAME, [], "; DRA claims: one, two"),
    "to be made": (BY_TEMPLATE, [], "; DRA claims: one of template gpu"),
    "made": (BY_TEMPLATE, MADE, "; DRA claims: p-a-x"),
    "not needed": (BY_TEMPLATE, NEEDS_NONE, ""),
    "many": (
        [{"name": f"{n}", "resourceClaimName": f"c{n}"} for n in range(18)],
        [],
        f"; DRA claims: {', '.join(f'c{n}' for n in range(16))} and 2 more",
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_pod_that_waits_is_listed_with_its_claims(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """By the word that is in the line of a pod that has its devices, so that one search finds both."""
    entries, made, ending = CLAIMS[name]
    meta = {"name": "p", "namespace": "default"}
    status = {"resourceClaimStatuses": made}
    spec = {"resourceClaims": entries}
    log = DecisionLog(World(Objects(), 0.0).state, lambda: 0.0)
    with caplog.at_level("INFO", "drayman.scheduler.decision_log"):
        log.waits(convert(Pod, {"metadata": meta, "spec": spec, "status": status}), "Why", "so.")
    assert caplog.messages == [f"pod default/p waits, Why: so{ending or '.'}"]
