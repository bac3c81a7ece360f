"""How many pods of one object may wait for a node."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.api.core import Pod, PodSpec, PodStatus
from drayman.api.struct import Json
from drayman.workloads.restraint import (
    MOST_WAITING,
    USUAL_BYTES,
    most_waiting,
    room_for,
    weight_of,
)

WAITING = Pod(status=PodStatus(phase="Pending"))
PLACED = Pod(spec=PodSpec(node_name="n"), status=PodStatus(phase="Running"))
ENDED = Pod(status=PodStatus(phase="Failed"))


def template(**spec: Json) -> dict[str, Json]:
    return {"metadata": {}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def test_a_usual_pod_counts_once() -> None:
    """Named claims and volumes exist anyway; only what is made for the pod counts."""
    named = template(
        resourceClaims=[{"name": "a", "resourceClaimName": "b"}],
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    assert weight_of(template()) == weight_of(named) == 1


def test_what_a_pod_brings_along_counts() -> None:
    """Claims from templates, volumes of its own, claims that its owner makes, and unusual size."""
    rich = template(
        resourceClaims=[{"name": n, "resourceClaimTemplateName": "t"} for n in "abc"],
        volumes=[{"name": "v", "ephemeral": {}}],
    )
    assert weight_of(rich, claims=2) == 1 + 3 + 1 + 2
    assert weight_of(template(x="x" * 10 * USUAL_BYTES)) == 11


@given(st.integers(1, 10 * MOST_WAITING), st.integers(0, 30), st.integers(0, 30), st.integers(0, 9))
def test_only_pods_that_wait_take_room(weight: int, waiting: int, placed: int, ended: int) -> None:
    """There is room for one pod at least, and for more as soon as some have a node."""
    pods = [WAITING] * waiting + [PLACED] * placed + [ENDED] * ended
    most = most_waiting(weight)
    assert most >= 1
    assert most * weight <= max(MOST_WAITING, weight)
    assert room_for(pods, weight) == max(0, most - waiting)
