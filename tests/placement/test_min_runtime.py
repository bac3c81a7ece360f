"""How long a pod is left alone once it has started."""

from __future__ import annotations

import pytest

from drayman.api.core import Pod, PodStatus
from drayman.api.meta import ObjectMeta
from drayman.api.times import seconds_of
from drayman.placement.min_runtime import MIN_RUNTIME, is_protected, protected_until

CREATED = "2026-01-01T00:00:00Z"
STARTED = "2026-01-01T00:10:00Z"
BEGIN = seconds_of(CREATED)


def a_pod(stated: str | None, started: str | None = STARTED) -> Pod:
    annotations = {} if stated is None else {MIN_RUNTIME: stated}
    metadata = ObjectMeta(name="a", annotations=annotations, creation_timestamp=CREATED)
    return Pod(metadata=metadata, status=PodStatus(start_time=started))


@pytest.mark.parametrize(
    ("pod", "minutes", "is_left_alone"),
    [
        pytest.param(a_pod(None), 11, False, id="nothing stated"),
        pytest.param(a_pod("30m"), 39, True, id="has run for less"),
        pytest.param(a_pod("30m"), 40, False, id="has run for as long"),
        pytest.param(a_pod("1h30m"), 99, True, id="hours and minutes"),
        pytest.param(a_pod("30m", None), 29, True, id="not started, recently created"),
        pytest.param(a_pod("30m", None), 31, False, id="not started, created long ago"),
        pytest.param(a_pod("soon"), 11, False, id="not a duration"),
        pytest.param(a_pod("0s"), 11, False, id="none at all"),
    ],
)
def test_a_pod_is_left_alone_until_it_has_run_for_its_time(
    pod: Pod, minutes: int, is_left_alone: bool
) -> None:
    """A pod is protected from its start until the stated time has passed, and one that states nothing never is."""
    assert is_protected(pod, BEGIN + minutes * 60) is is_left_alone


def test_the_moment_is_known() -> None:
    """It is known until when a pod is protected, and None says that it is not."""
    assert protected_until(a_pod("30m")) == BEGIN + 40 * 60
    assert protected_until(a_pod(None)) is None
