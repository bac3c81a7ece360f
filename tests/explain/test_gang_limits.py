"""What explanations say about the time limit of a gang, and about what its author says that it needs."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.custom_groups import PluginPodGroup
from drayman.api.times import timestamp_at
from drayman.explain.gang import Gangs
from drayman.placement.gangs.dialects import plugin
from drayman.reasons.reason import Headline, Reason
from simulate.cluster import NOW, cluster, pod


def member(name: str, age_s: float) -> Pod:
    metadata = {"labels": {plugin.LABEL: "g"}, "creationTimestamp": timestamp_at(NOW - age_s)}
    return pod(name, "one", metadata=metadata)


def explained(devices: int, *pods: Pod, **spec: Any) -> Headline:
    metadata = {"name": "g", "namespace": "default", "uid": "g"}
    group = convert(PluginPodGroup, {"metadata": metadata, "spec": {"minMember": 2, **spec}})
    world = cluster({"a": devices}, pods=pods, plugin_pod_groups=(group,))
    found = Gangs(world).find(plugin.key_of("default", "g"))
    assert found is not None
    assert found.refusal is not None
    return found.refusal.headline


def test_a_gang_that_is_late() -> None:
    """The reason comes first, then how long it has waited and how long it may."""
    two = (member("p", 725), member("q", 60))
    said = explained(1, *two, scheduleTimeoutSeconds=600)
    assert said.reason is Reason.GANG_OVERSIZED
    assert said.sentence.endswith("It has waited for 12 minutes; its time limit was 10 minutes.")


def test_a_gang_that_lacks_members_is_late_too() -> None:
    """Its pods may have been forgotten."""
    said = explained(8, member("p", 7300), scheduleTimeoutSeconds=600)
    assert said == Headline.of(
        Reason.GANG_INCOMPLETE,
        "Pod group default/g has 1 of the 2 pods that start together. "
        "It has waited for 2 hours; its time limit was 10 minutes.",
    )


def test_a_gang_that_has_time() -> None:
    """Nothing is said about its limit."""
    two = (member("p", 300), member("q", 60))
    assert "limit" not in explained(1, *two, scheduleTimeoutSeconds=600).sentence


def test_more_than_the_cluster_has() -> None:
    """What is wanted of which resource, and how much of it there is."""
    two = (member("p", 0), member("q", 0))
    assert explained(8, *two, minResources={"cpu": "64"}) == Headline.of(
        Reason.GANG_OVERSIZED,
        "Pod group default/g needs 64 of cpu by its minResources, and the cluster has 32.",
    )
