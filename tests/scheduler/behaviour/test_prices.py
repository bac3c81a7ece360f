"""Prices and spot nodes in a whole cluster."""

from __future__ import annotations

from typing import Any

from controllers.world import POD_VALUES, eventually
from drayman.cluster.resources import EVENTS, JsonObject, generic
from drayman.placement.price_table import read_price_table
from drayman.placement.prices import PRICE, SPOT
from drayman.placement.spending import COST
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import NODE_VALUES, Stage

TABLE = read_price_table(
    "prices.yaml", b"instanceTypes:\n  big: {on-demand: 9, spot: 3}\n  small: 1\n"
)
TYPE = "node.kubernetes.io/instance-type"
PRIORITY_CLASSES = generic(
    "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False
)


async def pod(stage: Stage, name: str, *, priority: int = 0, **annotations: str) -> None:
    container = {"name": "main", "image": "example.com/image:1"}
    said = {f"drayman.dev/{key}": value for key, value in annotations.items()}
    spec: JsonObject = {"containers": [container]}
    if priority:
        entry = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
        spec |= {"priorityClassName": "critical", "resourceClaims": [entry]}
    await stage.create(POD_VALUES, {"metadata": {"name": name, "annotations": said}, "spec": spec})


async def events(stage: Stage, name: str, reason: str) -> list[str]:
    listed = (await stage.client.list(EVENTS)).items
    found = [e for e in listed if (e["regarding"]["name"], e["reason"]) == (name, reason)]
    return [event["note"] for event in found]


async def test_pods_go_where_their_cost_or_priority_leads_them(cluster: Cluster) -> None:
    """By the table that the scheduler was given, and by what labels say."""
    async with cluster(prices=TABLE) as stage:
        await stage.device_class()
        await stage.make_template("gpu")
        await stage.node("big", "gpu-0", labels={TYPE: "big"})
        await stage.node("small", "gpu-0", labels={TYPE: "small"})
        await stage.node("smaller", labels={TYPE: "small", PRICE: "0.5"})
        await stage.create(PRIORITY_CLASSES, {"metadata": {"name": "critical"}, "value": 10**9})
        await pod(stage, "thrifty", cost="low")
        await pod(stage, "critical", priority=1)
        assert await stage.bound("thrifty") == "smaller"
        assert await stage.bound("critical") == "big"


async def test_a_pod_that_accepts_spot_is_tried_again(cluster: Cluster) -> None:
    """As soon as it says so; until then it says why it waits."""
    async with cluster(prices=TABLE) as stage:
        labels = {TYPE: "big", "karpenter.sh/capacity-type": "spot"}
        await stage.node("spot", labels=labels)
        await pod(stage, "p")
        await stage.refused("p", "1 node(s) were spot nodes", "SpotNotAccepted (held)")
        await stage.patch(POD_VALUES, "p", {"metadata": {"annotations": {SPOT: "true"}}})
        assert await stage.bound("p") == "spot"


async def test_what_cannot_be_understood_is_reported_once_and_stops_nothing(
    cluster: Cluster,
) -> None:
    """A node with such a label takes pods, and a pod with such an annotation gets a node."""
    async with cluster() as stage:
        await stage.node("a", labels={PRICE: "9.99EUR"})

        async def told() -> list[str]:
            return await events(stage, "a", "InvalidNodePrice")

        note = "node a: label drayman.dev/price-per-hour: '9.99EUR' is not a price such as \"32.77\", and is ignored"
        assert await eventually(told, bool) == [note]
        await pod(stage, "p")
        assert await stage.bound("p") == "a"
        await stage.patch(NODE_VALUES, "a", {"metadata": {"labels": {"team": "x"}}})
        await stage.patch(NODE_VALUES, "a", {"metadata": {"labels": {SPOT: "perhaps"}}})

        async def both() -> list[str]:
            return await events(stage, "a", "InvalidNodePrice")

        found = await eventually(both, lambda notes: len(notes) > 1)
        assert found[0] == note
        assert "drayman.dev/spot: 'perhaps'" in found[1]
        assert len(found) == 2


async def test_a_pod_that_is_not_understood_is_told(cluster: Cluster) -> None:
    """Where the server lets such annotations in, as others do."""
    async with cluster() as stage:
        await stage.node("spot", labels={SPOT: "true"})
        await pod(stage, "p")
        await stage.refused("p", "SpotNotAccepted")
        said: dict[str, Any] = {"metadata": {"annotations": {COST: "cheap"}}}
        await stage.patch(POD_VALUES, "p", said, "status")

        async def told() -> list[str]:
            return await events(stage, "p", "InvalidPodCost")

        note = "annotation drayman.dev/cost: 'cheap' is not \"low\", and is ignored"
        assert await eventually(told, bool) == [note]
