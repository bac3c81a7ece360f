"""What explanations say about room that others make."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.explain.group import explain_group
from drayman.explain.pod import explain_pod
from simulate.cluster import cluster, held, pod

KEPT = {"status": {"nominatedNodeName": "a"}}
GROUP = {"schedulingGroup": {"podGroupName": "g"}}


def low(**metadata: Any) -> Pod:
    return pod("low", claim="of-low", nodeName="a", metadata=metadata)


GOING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("metadata", "words"),
    [(GOING, "Room is kept for it on node a: 1 pod there has yet to go."), ({}, "on node a.")],
)
def test_a_pod_for_which_room_is_kept(metadata: dict[str, Any], words: str) -> None:
    """Its reason ends with where, and with how many pods have yet to go."""
    waiting = pod("x", "one", **KEPT)
    claims = (held("of-low", "a", "gpu-0"),)
    world = cluster({"a": 1}, pods=(low(**metadata), waiting), claims=claims)
    assert explain_pod(world, waiting, with_remedies=False).headline.sentence.endswith(words)


def test_nothing_is_said_where_nothing_is_kept() -> None:
    waiting = pod("x", "one")
    claims = (held("of-low", "a", "gpu-0"),)
    world = cluster({"a": 1}, pods=(low(), waiting), claims=claims)
    found = explain_pod(world, waiting, with_remedies=False)
    assert "kept" not in found.headline.sentence


def test_a_gang_for_which_room_is_kept() -> None:
    """Its group says the same as its pods, also one that has no node of its own yet."""
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    metadata = {"name": "g", "namespace": "default", "uid": "g"}
    group = convert(PodGroup, {"metadata": metadata, "spec": spec})
    pods = (low(**GOING), pod("x", "one", **KEPT, **GROUP), pod("y", "one", **GROUP))
    claims = (held("of-low", "a", "gpu-0"),)
    world = cluster({"a": 1, "b": 1}, pods=pods, claims=claims, pod_groups=(group,))
    words = "Room is kept for it on node a: 1 pod there has yet to go."
    assert explain_group(world, group).headline.sentence.endswith(words)
    for each in pods[1:]:
        found = explain_pod(world, each, with_remedies=False)
        assert found.headline.sentence.endswith(words)
