"""DaemonSets through the API, on nodes that come, go and change."""

from __future__ import annotations

import pytest

from controllers.workloads.stage import Stage, stage, template
from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.cluster.resources import DAEMON_SETS, NODES, PODS, JsonObject
from drayman.controllers.workloads.daemon_sets import DaemonSetController
from drayman.workloads.daemon_sets.placement import DaemonFit, DaemonNodes, node_of
from drayman.workloads.revisions import POD_LABEL


def daemon_set(body: JsonObject | None = None, **spec: object) -> JsonObject:
    selector = {"matchLabels": {"app": "agent"}}
    full = {"selector": selector, "template": body or template(app="agent"), **spec}
    return {"metadata": {"name": "agent"}, "spec": full}


def image(name: str) -> JsonObject:
    container = {"name": "main", "image": name}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


async def add_nodes(place: Stage, *names: str, **labels: str) -> None:
    for name in names:
        await place.create(NODES, {"metadata": {"name": name, "labels": labels}})
        await place.patch(NODES, name, {"spec": {"taints": None}})


def nodes_of(pods: list[Pod]) -> list[str]:
    return sorted(map(node_of, pods))


async def test_there_is_one_pod_on_each_node() -> None:
    """On nodes that are there, on those that come, and no longer on those that go."""
    async with stage(DaemonSetController) as place:
        await add_nodes(place, "n1", "n2")
        await place.create(DAEMON_SETS, daemon_set())
        pods = await place.until(PODS, lambda pods: len(pods) == 2)
        assert nodes_of(pods) == ["n1", "n2"]
        await add_nodes(place, "n3")
        await place.until(PODS, lambda pods: nodes_of(pods) == ["n1", "n2", "n3"])
        await place.client.delete(NODES, "n1")
        pods = await place.until(PODS, lambda pods: nodes_of(pods) == ["n2", "n3"])
        for pod in pods:
            await place.run_pod(pod)
        found = await place.until_one(DAEMON_SETS, "agent", lambda s: s.status.number_ready == 2)
        assert found.status.desired_number_scheduled == 2
        assert found.status.updated_number_scheduled == 2
        assert found.status.number_unavailable == 0


async def test_a_pod_is_tied_to_its_node_and_tolerates_its_troubles() -> None:
    """By a required affinity to the node's name, with the tolerations that every daemon has."""
    async with stage(DaemonSetController) as place:
        await add_nodes(place, "n1")
        await place.create(DAEMON_SETS, daemon_set())
        (pod,) = await place.until(PODS, lambda pods: len(pods) == 1)
        assert pod.spec.node_name == ""
        tolerated = {(t.key, t.effect) for t in pod.spec.tolerations if t.operator == "Exists"}
        assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerated
        forever = {t.key for t in pod.spec.tolerations if t.toleration_seconds is None}
        assert {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} <= forever


async def test_a_daemon_bears_the_troubles_of_its_node_for_good() -> None:
    """A time that its template sets for one of them does not count; what it says of other taints does."""
    body = template(app="agent")
    limited = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}
    keys = ("node.kubernetes.io/unreachable", "example.com/other")
    body["spec"]["tolerations"] = [{"key": key, **limited} for key in keys]
    async with stage(DaemonSetController) as place:
        await add_nodes(place, "n1")
        await place.create(DAEMON_SETS, daemon_set(body))
        (pod,) = await place.until(PODS, lambda pods: len(pods) == 1)
        seconds = [t.toleration_seconds for t in pod.spec.tolerations if t.key in keys]
        assert seconds == [None, 9]


async def test_labels_and_taints_decide_about_nodes() -> None:
    """A node selector excludes a node; a NoExecute taint removes the pod; a NoSchedule taint keeps it."""
    body = template(app="agent")
    body["spec"]["nodeSelector"] = {"gpu": "true"}
    async with stage(DaemonSetController) as place:
        await add_nodes(place, "n1", "n2", gpu="true")
        await add_nodes(place, "plain")
        await place.create(DAEMON_SETS, daemon_set(body))
        await place.until(PODS, lambda pods: nodes_of(pods) == ["n1", "n2"])
        keeps = [{"key": "k", "effect": "NoSchedule"}]
        await place.patch(NODES, "n1", {"spec": {"taints": keeps}})
        await place.until_one(DAEMON_SETS, "agent", lambda s: s.status.number_misscheduled == 1)
        removes = [{"key": "k", "effect": "NoExecute"}]
        await place.patch(NODES, "n2", {"spec": {"taints": removes}})
        await place.until(PODS, lambda pods: nodes_of(pods) == ["n1"])


async def test_an_update_replaces_one_pod_at_a_time() -> None:
    """With maxUnavailable of one the next pod is only deleted when the new one serves."""
    async with stage(DaemonSetController) as place:
        await add_nodes(place, "n1", "n2")
        await place.create(DAEMON_SETS, daemon_set())
        for pod in await place.until(PODS, lambda pods: len(pods) == 2):
            await place.run_pod(pod)
        await place.until_one(DAEMON_SETS, "agent", lambda s: s.status.number_available == 2)
        await place.patch(DAEMON_SETS, "agent", image("j"))
        for count in (1, 2):
            pods = await place.until(
                PODS, lambda pods, c=count: len(pods) == 2 and _images(pods).count("j") == c
            )
            fresh = next(
                p for p in pods if p.spec.containers[0].image == "j" and not p.status.conditions
            )
            await place.run_pod(fresh)
        done = await place.until_one(
            DAEMON_SETS, "agent", lambda s: s.status.updated_number_scheduled == 2
        )
        assert done.status.observed_generation == done.metadata.generation
        assert len({p.metadata.labels[POD_LABEL] for p in await place.pods()}) == 1


async def test_an_update_can_surge() -> None:
    """With maxSurge the new pod comes beside the old one, which goes when the new one serves."""
    strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    async with stage(DaemonSetController) as place:
        await add_nodes(place, "n1")
        await place.create(DAEMON_SETS, daemon_set(updateStrategy=strategy))
        (old,) = await place.until(PODS, lambda pods: len(pods) == 1)
        await place.run_pod(old)
        await place.until_one(DAEMON_SETS, "agent", lambda s: s.status.number_available == 1)
        await place.patch(DAEMON_SETS, "agent", image("j"))
        pods = await place.until(PODS, lambda pods: len(pods) == 2)
        await place.run_pod(next(p for p in pods if p.metadata.uid != old.metadata.uid))
        await place.until(PODS, lambda pods: _images(pods) == ["j"])


async def test_on_delete_leaves_replacing_to_others() -> None:
    """A new template only reaches a pod that somebody deletes."""
    async with stage(DaemonSetController) as place:
        await add_nodes(place, "n1")
        await place.create(DAEMON_SETS, daemon_set(updateStrategy={"type": "OnDelete"}))
        (old,) = await place.until(PODS, lambda pods: len(pods) == 1)
        await place.patch(DAEMON_SETS, "agent", image("j"))
        await place.until_one(
            DAEMON_SETS, "agent", lambda s: s.status.observed_generation == s.metadata.generation
        )
        assert _images(await place.pods()) == ["i"]
        await place.remove_pod(old)
        await place.until(PODS, lambda pods: _images(pods) == ["j"])


async def test_a_failed_pod_is_replaced() -> None:
    """With an event that says which and where."""
    async with stage(DaemonSetController) as place:
        await add_nodes(place, "n1")
        await place.create(DAEMON_SETS, daemon_set())
        (old,) = await place.until(PODS, lambda pods: len(pods) == 1)
        await place.set_phase(old, "Failed")
        await place.until(
            PODS, lambda pods: [p for p in pods if p.metadata.uid != old.metadata.uid] == pods != []
        )
        await place.told("FailedDaemonPod")


def _images(pods: list[Pod]) -> list[str]:
    return [pod.spec.containers[0].image for pod in pods]


GPU_TERM = {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}
FITS = {
    "a plain node": ({}, {}, [], DaemonFit(True, True)),
    "another node is named": ({"nodeName": "other"}, {}, [], DaemonFit(False, False)),
    "the selector matches": ({"nodeSelector": {"a": "b"}}, {"a": "b"}, [], DaemonFit(True, True)),
    "the selector does not match": ({"nodeSelector": {"a": "b"}}, {}, [], DaemonFit(False, False)),
    "the affinity does not match": (
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [GPU_TERM]
                    }
                }
            }
        },
        {},
        [],
        DaemonFit(False, False),
    ),
    "a taint against new pods": ({}, {}, [("k", "NoSchedule")], DaemonFit(False, True)),
    "a taint against all pods": ({}, {}, [("k", "NoExecute")], DaemonFit(False, False)),
    "a taint that only prefers": ({}, {}, [("k", "PreferNoSchedule")], DaemonFit(True, True)),
    "a tolerated taint": (
        {"tolerations": [{"key": "k", "operator": "Exists"}]},
        {},
        [("k", "NoExecute")],
        DaemonFit(True, True),
    ),
    "a node in trouble": (
        {},
        {},
        [("node.kubernetes.io/unreachable", "NoExecute")],
        DaemonFit(True, True),
    ),
    "without a network": (
        {},
        {},
        [("node.kubernetes.io/network-unavailable", "NoSchedule")],
        DaemonFit(False, True),
    ),
    "without a network, on the host's": (
        {"hostNetwork": True},
        {},
        [("node.kubernetes.io/network-unavailable", "NoSchedule")],
        DaemonFit(True, True),
    ),
}


@pytest.mark.parametrize("case", FITS)
def test_where_a_daemon_belongs(case: str) -> None:
    """By name, labels, affinity and taints."""
    spec, labels, taints, expected = FITS[case]
    node = convert(
        Node,
        {
            "metadata": {"name": "n", "labels": labels},
            "spec": {"taints": [{"key": key, "effect": effect} for key, effect in taints]},
        },
    )
    assert DaemonNodes({"spec": spec}).fit(node) == expected
