"""Scenarios of claims and of jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controllers.world import eventually
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import JOBS, PODS
from drayman.explain.answer import Explanation
from drayman.placement.decision.deciding import Decider
from drayman.placement.placing import Found
from drayman.reasons.reason import Reason
from explain.applying import apply
from explain.scenarios.playing import Play, server
from explain.scenarios.scene import NVIDIA, Scene
from explain.scenarios.telling import Scenario, check, explain, named
from oracle.build import claim, exactly
from oracle.nodes import JsonObject

LEAVING = "2027-01-15T07:59:00Z"


def gpus(count: int) -> JsonObject:
    return claim(exactly("gpus", count, cls=NVIDIA))


def dgx() -> Scene:
    return Scene("dgx-h100=1")


# Claims.


def in_use() -> Scene:
    return dgx().holds("llama", "dgx-h100-0", "gpu-0 gpu-1", job="pretrain", priority=10)


def in_shared_use() -> Scene:
    scene = dgx().holds("reader-0", "dgx-h100-0", "gpu-5")
    users = scene.objects["claims"][0]["status"]["reservedFor"]
    for name in ("reader-1", "reader-2"):
        scene.runs(name, "dgx-h100-0", {"reader-0-claim": None})
        users.append({"resource": "pods", "name": name, "uid": f"pod-{name}"})
    return scene


def kept_by_nobody() -> Scene:
    results = [{"request": "gpus", "driver": NVIDIA, "pool": "dgx-h100-0", "device": "gpu-0"}]
    return dgx().claim("kept", gpus(1), results, node="dgx-h100-0")


def unused() -> Scene:
    return dgx().claim("spare", gpus(2)).waits("etl", cpu=1)


def unused_since_its_pod_ended() -> Scene:
    scene = dgx().claim("spare", gpus(2)).waits("llama", {"spare": None})
    scene.objects["pods"][-1]["status"]["phase"] = "Succeeded"
    return scene


def waits_with_its_pod() -> Scene:
    scene = dgx().holds("bert", "dgx-h100-0", "gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5")
    return scene.waits("llama-0", {"shared": gpus(4)}).waits("llama-1", {"shared": None})


def ready_to_be_had() -> Scene:
    return dgx().waits("llama", {"training": gpus(4)})


def going() -> Scene:
    return dgx().claim("training", gpus(4), deletionTimestamp=LEAVING)


def fabric(*conditions: JsonObject) -> Scene:
    device = {"driver": "gpu.example.com", "pool": "fabric", "device": "gpu-7"}
    needs = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["AttachFailed"]}
    scene = Scene().node("node-a").slice([{"name": "gpu-7", **needs}], pool="fabric", allNodes=True)
    result = {"request": "gpu", **device, **needs}
    scene.claim("fabric-gpu", claim(exactly("gpu")), [result], node="node-a", users=["infer"])
    status = scene.objects["claims"][-1]["status"]
    status["allocation"]["allocationTimestamp"] = "2027-01-15T07:55:00Z"
    if conditions:
        status["devices"] = [{**device, "conditions": list(conditions)}]
    return scene.waits("infer", {"fabric-gpu": None})


def attaching() -> Scene:
    return fabric()


def attach_failed() -> Scene:
    return fabric({"type": "AttachFailed", "status": "True", "message": "no free port"})


# Jobs.


def job(**spec: Any) -> Scene:
    """A job of which each pod wants four GPUs."""
    return dgx().template("four-gpus", gpus(4)).job("pretrain", {"gpus": "four-gpus"}, **spec)


def suspended() -> Scene:
    return job(suspend=True, parallelism=2).runs("dcgm", "dgx-h100-0", cpu=1)


def suspended_and_too_large() -> Scene:
    scene = dgx().template("nine-gpus", gpus(9))
    return scene.job("pretrain", {"gpus": "nine-gpus"}, suspend=True)


def no_pods_yet() -> Scene:
    return job(parallelism=2)


def paused() -> Scene:
    return job(parallelism=0)


def left_to_multikueue() -> Scene:
    return job(managedBy="kueue.x-k8s.io/multikueue")


def job_going() -> Scene:
    scene = job()
    scene.objects["jobs"][0]["metadata"]["deletionTimestamp"] = LEAVING
    return scene


def ended(condition: str, **fields: str) -> Scene:
    scene = job()
    told = {"type": condition, "status": "True", **fields}
    scene.objects["jobs"][0]["status"]["conditions"] = [told]
    return scene


def complete() -> Scene:
    return ended("Complete")


def failed() -> Scene:
    return ended("Failed", message="Job has reached the specified backoff limit")


def half_of_it_runs() -> Scene:
    scene = dgx().job("pretrain", parallelism=4)
    scene.holds("pretrain-0", "dgx-h100-0", "gpu-0 gpu-1 gpu-2 gpu-3", job="pretrain")
    scene.waits("pretrain-1", {"one": gpus(8)}, job="pretrain")
    scene.waits("pretrain-2", {"two": gpus(8)}, job="pretrain")
    gate = [{"name": "example.com/checkpoint"}]
    return scene.waits("pretrain-3", {"three": gpus(8)}, job="pretrain", schedulingGates=gate)


def all_of_it_runs() -> Scene:
    scene = dgx().job("pretrain", parallelism=2)
    scene.holds("pretrain-0", "dgx-h100-0", "gpu-0 gpu-1 gpu-2 gpu-3", job="pretrain")
    return scene.holds("pretrain-1", "dgx-h100-0", "gpu-4 gpu-5 gpu-6 gpu-7", job="pretrain")


def its_only_pod_fits() -> Scene:
    return dgx().job("pretrain").waits("pretrain-0", {"one": gpus(8)}, job="pretrain")


SCENARIOS = (
    Scenario(
        name="a claim in use by one pod",
        scene=in_use,
        reason=Reason.ALLOCATED,
        says=("gpu-0 and gpu.nvidia.com/dgx-h100-0/gpu-1", "used by llama"),
        about="claim/llama-claim",
        holders=("default/llama of Job/pretrain priority 10: gpu-0 gpu-1",),
    ),
    Scenario(
        name="a claim in use by three pods",
        scene=in_shared_use,
        reason=Reason.ALLOCATED,
        says=("gpu-5", "used by reader-0, reader-1 and reader-2"),
        about="claim/reader-0-claim",
        holders=("default/reader-0,reader-1,reader-2: gpu-5",),
    ),
    Scenario(
        name="a claim that keeps its device for nobody",
        scene=kept_by_nobody,
        reason=Reason.ALLOCATED,
        says=("gpu-0", "not used at the moment"),
        about="claim/kept",
        holders=("default/kept: gpu-0",),
    ),
    Scenario(
        name="a claim that no pod uses",
        scene=unused,
        reason=Reason.CLAIM_UNUSED,
        says="No pod uses the claim",
        about="claim/spare",
    ),
    Scenario(
        name="a claim whose only pod has ended",
        scene=unused_since_its_pod_ended,
        reason=Reason.CLAIM_UNUSED,
        says="No pod uses the claim",
        about="claim/spare",
    ),
    Scenario(
        name="a claim that waits with two pods",
        scene=waits_with_its_pod,
        reason=Reason.DEVICES_IN_USE,
        says=(
            "It waits for pod llama-0 and 1 more pod: Claim shared, request gpus wants 4 devices",
            "6 are in use",
        ),
        about="claim/shared",
        remedies=(
            "Ask for 2 instead of 4 in request gpus of claim shared.",
            "Delete pod default/bert.",
        ),
    ),
    Scenario(
        name="a claim that can be served",
        scene=ready_to_be_had,
        reason=Reason.FITS,
        says="It can get its devices with pod llama: The pod can go to node dgx-h100-0",
        about="claim/training",
    ),
    Scenario(
        name="a claim that is being deleted",
        scene=going,
        reason=Reason.CLAIM_DELETING,
        says="Claim training is being deleted.",
        about="claim/training",
    ),
    Scenario(
        name="a claim whose device is being attached",
        scene=attaching,
        reason=Reason.DEVICES_NOT_READY,
        says=(
            "Claim fabric-gpu has 1 device that the driver has yet to make ready",
            "gpu-7 (Attached)",
        ),
        about="claim/fabric-gpu",
        holders=("default/infer: gpu-7",),
    ),
    Scenario(
        name="a claim whose device cannot be attached",
        scene=attach_failed,
        reason=Reason.BINDING_FAILED,
        says=("Claim fabric-gpu", "gpu-7 reports AttachFailed: no free port."),
        about="claim/fabric-gpu",
        holders=("default/infer: gpu-7",),
    ),
    Scenario(
        name="a suspended job",
        scene=suspended,
        reason=Reason.SUSPENDED,
        says="The job is suspended",
        about="job/pretrain",
        remedies=("Resume the job.",),
    ),
    Scenario(
        name="a suspended job that would not fit",
        scene=suspended_and_too_large,
        reason=Reason.SUSPENDED,
        says="The job is suspended",
        about="job/pretrain",
    ),
    Scenario(
        name="a job without pods",
        scene=no_pods_yet,
        reason=Reason.NO_PODS,
        says="The job controller has not created any pods",
        about="job/pretrain",
    ),
    Scenario(
        name="a job that wants no pods",
        scene=paused,
        reason=Reason.NO_PODS,
        says="no pods while spec.parallelism is 0",
        about="job/pretrain",
    ),
    Scenario(
        name="a job of another controller",
        scene=left_to_multikueue,
        reason=Reason.NO_PODS,
        says="left to kueue.x-k8s.io/multikueue",
        about="job/pretrain",
    ),
    Scenario(
        name="a job that is being deleted",
        scene=job_going,
        reason=Reason.TERMINATING,
        says="The job is being deleted.",
        about="job/pretrain",
    ),
    Scenario(
        name="a job that is complete",
        scene=complete,
        reason=Reason.RUNS,
        says="The job is complete.",
        about="job/pretrain",
    ),
    Scenario(
        name="a job that has failed",
        scene=failed,
        reason=Reason.FAILED,
        says="The job has failed: Job has reached the specified backoff limit.",
        about="job/pretrain",
    ),
    Scenario(
        name="a job of which some pods wait",
        scene=half_of_it_runs,
        reason=Reason.DEVICES_IN_USE,
        says=(
            "3 of 4 pods wait, 2 of them for this reason: Claim one, request gpus wants 8 devices",
            "4 are in use",
        ),
        about="job/pretrain",
        remedies=("Ask for 4 instead of 8 in request gpus of claim one.",),
    ),
    Scenario(
        name="a job whose pods all run",
        scene=all_of_it_runs,
        reason=Reason.RUNS,
        says="All 2 pods of the job have their nodes.",
        about="job/pretrain",
    ),
    Scenario(
        name="a job whose only pod fits",
        scene=its_only_pod_fits,
        reason=Reason.FITS,
        says="The job's only pod can be placed.",
        about="job/pretrain",
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)


PARTS: list[tuple[Callable[[], Scene], str, tuple[str, ...]]] = [
    (waits_with_its_pod, "claim/shared", ("llama-0: DevicesInUse",)),
    (ready_to_be_had, "claim/training", ("llama: Fits",)),
    (in_use, "claim/llama-claim", ()),
    (suspended, "job/pretrain", ()),
    (
        half_of_it_runs,
        "job/pretrain",
        ("2 as pretrain-1: DevicesInUse", "pretrain-3: Gated", "pretrain-0: Runs"),
    ),
    (all_of_it_runs, "job/pretrain", ("2 as pretrain-0: Runs",)),
    (its_only_pod_fits, "job/pretrain", ("pretrain-0: Fits",)),
]
"""By scene and subject: the pods that are explained with it, those that wait first."""


@pytest.mark.parametrize(
    ("scene", "about", "parts"), PARTS, ids=[part[0].__name__ for part in PARTS]
)
def test_the_pods_behind_it(scene: Callable[[], Scene], about: str, parts: tuple[str, ...]) -> None:
    """One pod stands for all with its reason, and what would help it does help."""
    world = scene().world()
    found = explain(world, about)
    assert tuple(map(told, found.parts)) == parts
    for part in found.parts:
        for remedy in part.remedies:
            after = world.with_objects(apply(world.objects, remedy))
            pod = after.pod(part.namespace, part.name)
            assert pod is not None, f"the pod itself is gone: {remedy.sentence}"
            round_ = Decider(after.state).round(after.now)
            assert isinstance(round_.find(round_.demand(pod)), Found), remedy.sentence


async def test_a_job_that_is_resumed_runs() -> None:
    """On a cluster, the suspended job has no pods; once the remedy is carried out, each of its pods gets a node."""
    scene = suspended()
    world = scene.world()
    (remedy,) = explain(world, "job/pretrain").remedies
    async with server(world.features) as client:
        await Play(client, world.objects, scene.objects).begin()
        (written,) = scene.objects["jobs"]
        job = {**written, "metadata": {"name": "pretrain", "namespace": "default"}}
        await client.create(JOBS.as_values(), job, "default")
        (operation,) = remedy.operations
        patch = json_patch([dict(step) for step in operation.patch])
        await client.patch(JOBS.as_values(), "pretrain", patch, "default")

        async def placed() -> int:
            listed = (await client.list(PODS, "default")).items
            return sum(bool(p.spec.node_name) for p in listed if p.metadata.owner_references)

        await eventually(placed, lambda number: number == 2)


def test_a_pod_gains_nothing_from_its_siblings() -> None:
    """Pods of the job that the pod belongs to are not to go, and its end is not to be waited for."""
    waiting = explain(half_of_it_runs().world(), "job/pretrain").parts[0]
    sentences = [remedy.sentence for remedy in waiting.remedies]
    assert sentences == ["Ask for 4 instead of 8 in request gpus of claim one."]


def told(part: Explanation) -> str:
    many = f"{part.count} as " if part.count > 1 else ""
    return f"{many}{part.name}: {part.headline.reason.value}"
