"""Scenarios of other things that are in the wrong place: claims, volumes, and other pods."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import Scene, gpus, mounted, near
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.selectors import GPU

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def claim_in_another_zone() -> Scene:
    scene = Scene().node("n1", 2, labels={"zone": "a"}).node("n2", 2, labels={"zone": "b"})
    result = {"request": "gpus", "driver": GPU, "pool": "n1", "device": "gpu-0"}
    scene.claim("shared", gpus(), [result], node="n1", users=["first"])
    scene.runs("first", "n1", {"shared": None})
    return scene.waits("second", {"shared": None}, nodeSelector={"zone": "b"})


def claim_on_a_node_that_is_gone() -> Scene:
    scene = Scene().node("n2", 2)
    result = {"request": "gpus", "driver": GPU, "pool": "n1", "device": "gpu-0"}
    scene.claim("shared", gpus(), [result], node="n1", users=["first"])
    scene.runs("first", "n1", {"shared": None})
    return scene.waits("second", {"shared": None})


def disk_in_another_node() -> Scene:
    scene = Scene().node("n1").node("n2", 2).volume("data", node="n1")
    return scene.waits("trainer", {"one": gpus()}, volumes=[mounted("data")])


def no_disk_where_the_gpus_are() -> Scene:
    scene = Scene().node("n1").node("n2", 2).storage_class("disks")
    scene.disk("far", "1Ti", "n1", "disks").disk("small", "1Gi", "n2", "disks")
    scene.volume_claim("data", "100Gi", "disks")
    return scene.waits("trainer", {"one": gpus()}, volumes=[mounted("data")])


def one_disk_for_two_claims() -> Scene:
    scene = Scene().node("n1", 2).storage_class("disks").disk("only", "1Ti", "n1", "disks")
    scene.volume_claim("data", "100Gi", "disks").volume_claim("logs", "1Gi", "disks")
    return scene.waits("trainer", {"one": gpus()}, volumes=[mounted("data"), mounted("logs")])


def beside_the_cache() -> Scene:
    scene = Scene().node("n1").node("n2", 2).runs("cache", "n1", labels={"app": "cache"})
    rule = {"podAffinity": {REQUIRED: near("cache")}}
    return scene.waits("server", {"one": gpus()}, affinity=rule)


def never_two_on_a_node() -> Scene:
    app, rule = {"app": "server"}, {"podAntiAffinity": {REQUIRED: near("server")}}
    scene = Scene().node("n1", 4).holds("server-0", "n1", "gpu-0", labels=app)
    return scene.waits("server-1", {"one": gpus()}, affinity=rule, labels=app)


def kept_away_by_who_is_there() -> Scene:
    rule = {"podAntiAffinity": {REQUIRED: near("batch")}}
    scene = Scene().node("n1", 4).holds("latency", "n1", "gpu-0", affinity=rule)
    return scene.waits("batch", {"one": gpus()}, labels={"app": "batch"})


def spread_over_zones() -> Scene:
    app = {"app": "server"}
    scene = Scene().node("n1", 4, labels={"zone": "a"}).node("n2", labels={"zone": "b"})
    scene.holds("server-0", "n1", "gpu-0", labels=app)
    rule = {"labelSelector": {"matchLabels": app}, "topologyKey": "zone", "maxSkew": 1}
    rules = [{**rule, "whenUnsatisfiable": "DoNotSchedule"}]
    return scene.waits("server-1", {"one": gpus()}, labels=app, topologySpreadConstraints=rules)


SCENARIOS = (
    Scenario(
        name="a shared claim has its GPU in another zone",
        scene=claim_in_another_zone,
        reason=Reason.CLAIM_ELSEWHERE,
        says="Claim shared has its devices on node n1, where the pod cannot run: not matching the pod's node selector or affinity",
        fit="node selector 1, allocated claims 0",
        nearest=Near("n1", "it does not match the pod's node selector or affinity"),
        remedies=(
            "Delete pod default/first so that claim shared can move.",
            "Drop zone=b from the pod's node selector.",
        ),
    ),
    Scenario(
        name="a shared claim has its GPU on a node that is gone",
        scene=claim_on_a_node_that_is_gone,
        reason=Reason.CLAIM_ELSEWHERE,
        says="Claim shared has its devices on node n1, which does not exist",
        fit="allocated claims 0",
        nearest=Near("n2", "claim shared has its devices elsewhere"),
        remedies=("Delete pod default/first so that claim shared can move.",),
    ),
    Scenario(
        name="the disk of the pod is in a node without GPUs",
        scene=disk_in_another_node,
        reason=Reason.VOLUME_ELSEWHERE,
        says="Node n2, which could serve claim one, cannot reach a volume of the pod",
        fit="volumes 1",
        funnels={"gpus": "node fit 1/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n2",
            "a volume of the pod cannot be reached from there; its devices would do",
            devices="gpu-0 gpu-1",
        ),
    ),
    Scenario(
        name="no disk that is large enough in the node with the GPUs",
        scene=no_disk_where_the_gpus_are,
        reason=Reason.VOLUME_LACKING,
        says=(
            "Node n2, which could serve claim one, has no volume for volume claim data:",
            "of 2 volumes of class disks, 1 elsewhere and 1 too small",
        ),
        fit="volumes 1",
        funnels={"gpus": "node fit 1/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n2",
            "no volume for a volume claim of the pod; its devices would do",
            devices="gpu-0 gpu-1",
        ),
    ),
    Scenario(
        name="one disk for two claims",
        scene=one_disk_for_two_claims,
        reason=Reason.VOLUME_LACKING,
        says="Node n1, which could serve claim one, has too few volumes for the volume claims of the pod",
        fit="volumes 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "no volume for a volume claim of the pod; its devices would do",
            devices="gpu-0 gpu-1",
        ),
    ),
    Scenario(
        name="a server beside its cache, which is on a node without GPUs",
        scene=beside_the_cache,
        reason=Reason.POD_AFFINITY,
        says="Node n2, which could serve claim one, is ruled out by the pod's affinity to other pods",
        fit="pod affinity 1",
        funnels={"gpus": "node fit 1/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n2",
            "it is ruled out by the pod's affinity to other pods; its devices would do",
            devices="gpu-0 gpu-1",
        ),
        remedies=("Drop the pod's required pod affinity.",),
    ),
    Scenario(
        name="never two servers on one node",
        scene=never_two_on_a_node,
        reason=Reason.POD_ANTI_AFFINITY,
        says="Node n1, which could serve claim one, is ruled out by the pod's anti-affinity to pods there",
        fit="pod affinity 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "it is ruled out by the pod's anti-affinity to pods there; its devices would do",
            devices="gpu-1 gpu-2 gpu-3",
        ),
        holders=("default/server-0: gpu-0",),
        remedies=(
            "Delete pod default/server-0.",
            "Drop the pod's required pod anti-affinity.",
        ),
    ),
    Scenario(
        name="a pod that does not want batch work beside it",
        scene=kept_away_by_who_is_there,
        reason=Reason.POD_ANTI_AFFINITY,
        says="Node n1, which could serve claim one, is ruled out by the anti-affinity of pods there",
        fit="pod affinity 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "it is ruled out by the anti-affinity of pods there; its devices would do",
            devices="gpu-1 gpu-2 gpu-3",
        ),
        holders=("default/latency: gpu-0",),
        remedies=("Delete pod default/latency.",),
    ),
    Scenario(
        name="servers spread over zones of which one has no GPUs",
        scene=spread_over_zones,
        reason=Reason.TOPOLOGY_SPREAD,
        says="Node n1, which could serve claim one, is ruled out by the pod's topology spread constraints",
        fit="spreading 1",
        funnels={"gpus": "node fit 1/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "it is ruled out by the pod's topology spread constraints; its devices would do",
            devices="gpu-1 gpu-2 gpu-3",
        ),
        holders=("default/server-0: gpu-0",),
        remedies=(
            "Let the pod be spread over zone only where possible (ScheduleAnyway).",
            "Delete pod default/server-0.",
        ),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
