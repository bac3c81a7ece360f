"""Scenarios of pods that are held back before any node is looked at."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene, generated, gpus
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import claim, exactly
from oracle.nodes import JsonObject

FOUR_GPUS = claim(exactly("gpus", 4, cls=NVIDIA))
LEAVING = "2027-01-15T07:59:00Z"
EIGHT = "gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5 gpu-6 gpu-7"


def dgx() -> Scene:
    return Scene("dgx-h100=1")


# Held by what the pod itself says.


def not_admitted() -> Scene:
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    return dgx().waits("llama", {"gpus": FOUR_GPUS}, schedulingGates=gates)


def gated_and_full() -> Scene:
    scene = dgx().holds("bert", "dgx-h100-0", "gpu-0 gpu-1 gpu-2 gpu-3 gpu-4")
    gates = [{"name": "example.com/budget"}, {"name": "example.com/licence"}]
    return scene.waits("llama", {"gpus": FOUR_GPUS}, schedulingGates=gates)


def not_covered() -> Scene:
    scene = dgx().waits("llama", {"gpus": FOUR_GPUS})
    said = "NotCharged (held): No quota covers the pod: pod llama has no Workload that is admitted."
    condition = {"type": "PodScheduled", "status": "False", "message": said}
    scene.objects["pods"][-1].setdefault("status", {})["conditions"] = [condition]
    return scene


def left_to_volcano() -> Scene:
    return dgx().waits("llama", {"gpus": FOUR_GPUS}, schedulerName="volcano")


def leaving() -> Scene:
    metadata = {"deletionTimestamp": LEAVING, "finalizers": ["example.com/checkpoint"]}
    return dgx().waits("llama", {"gpus": FOUR_GPUS}, metadata=metadata)


def leaving_its_node() -> Scene:
    scene = dgx().holds("llama", "dgx-h100-0", "gpu-0 gpu-1")
    scene.objects["pods"][-1]["metadata"]["deletionTimestamp"] = LEAVING
    return scene


def image_is_missing() -> Scene:
    scene = dgx().holds("llama", "dgx-h100-0", "gpu-0 gpu-1")
    waiting = {"reason": "ErrImageNeverPull", "message": 'Container image "train:1" is missing'}
    states = [{"name": "main", "state": {"waiting": waiting}}]
    scene.objects["pods"][-1]["status"] |= {"phase": "Pending", "containerStatuses": states}
    return scene


# Held for want of a claim.


def claim_misspelt() -> Scene:
    return dgx().claim("training-gpus", FOUR_GPUS).waits("llama", {"trainning-gpus": None})


def template_as_claim() -> Scene:
    return dgx().template("four-gpus", FOUR_GPUS).waits("llama", {"four-gpus": None})


def claim_never_made() -> Scene:
    return dgx().claim("scratch", FOUR_GPUS).waits("llama", {"training-gpus": None})


def template_misspelt() -> Scene:
    return dgx().template("four-gpus", FOUR_GPUS).waits("llama", {"gpus": "four-gpu"})


def claim_as_template() -> Scene:
    return dgx().claim("training-gpus", FOUR_GPUS).waits("llama", {"gpus": "training-gpus"})


def template_elsewhere() -> Scene:
    template = {"metadata": {"name": "four-gpus", "namespace": "team-a", "uid": "template-a"}}
    scene = dgx().add("templates", {**template, "spec": {"spec": FOUR_GPUS["spec"]}})
    return scene.waits("llama", {"gpus": "four-gpus"})


def ring(*entries: JsonObject) -> JsonObject:
    """A pod group."""
    metadata = {"name": "ring", "namespace": "default", "uid": "group-ring"}
    return {"metadata": metadata, "spec": {"resourceClaims": list(entries)}}


def claim_of_the_group() -> Scene:
    entry = {"name": "channel", "resourceClaimTemplateName": "one-channel"}
    channel = claim(exactly("channel", cls="compute-domain-default-channel.nvidia.com"))
    scene = dgx().template("one-channel", channel).add("pod_groups", ring(entry))
    group = {"podGroupName": "ring"}
    return scene.waits("llama-0", {"channel": "one-channel"}, schedulingGroup=group)


def group_misspelt() -> Scene:
    scene = dgx().add("pod_groups", ring())
    return scene.waits("llama-0", {"gpus": FOUR_GPUS}, schedulingGroup={"podGroupName": "rings"})


def claim_on_its_way_out() -> Scene:
    scene = dgx().claim("shared-gpus", FOUR_GPUS, deletionTimestamp=LEAVING)
    return scene.waits("llama", {"shared-gpus": None})


def claim_of_an_earlier_pod() -> Scene:
    owner = generated("gpus", "llama")
    owner["ownerReferences"][0]["uid"] = "pod-llama-of-yesterday"
    scene = dgx().template("four-gpus", FOUR_GPUS).claim("llama-gpus-x7k2p", FOUR_GPUS, **owner)
    known = [{"name": "gpus", "resourceClaimName": "llama-gpus-x7k2p"}]
    return scene.waits("llama", {"gpus": "four-gpus"}, status={"resourceClaimStatuses": known})


def leftover() -> Scene:
    owner = generated("", "llama")
    owner["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    scene = Scene().device_class("plain", extendedResourceName="example.com/gpu")
    scene.node("node-a", 4).claim("llama-extended-resources-8xkcd", claim(exactly()), **owner)
    return scene.waits("llama", extended={"example.com/gpu": 2})


# Held for want of a volume.


def with_data(scene: Scene) -> Scene:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}}
    return scene.waits("resnet", {"gpus": FOUR_GPUS}, volumes=[volume])


def volume_not_bound() -> Scene:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Ti"}},
        "storageClassName": "fast",
    }
    metadata = {"name": "imagenet", "namespace": "default", "uid": "volume-claim-imagenet"}
    return with_data(dgx().add("volume_claims", {"metadata": metadata, "spec": spec}))


def volume_being_made() -> Scene:
    selected = {"volume.kubernetes.io/selected-node": "dgx-h100-0"}
    scene = dgx().storage_class("fast", "ebs.csi.aws.com")
    return with_data(scene.volume_claim("imagenet", "1Ti", "fast", **selected))


def no_volume_claim() -> Scene:
    return with_data(dgx())


# Held for want of devices that are ready.


def attached(*conditions: JsonObject, since: str = "2027-01-15T07:55:00Z") -> Scene:
    """A GPU of a fabric, which its driver attaches to the node after it was chosen."""
    device = {"driver": "gpu.example.com", "pool": "fabric", "device": "gpu-7"}
    needs = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["AttachFailed"]}
    scene = Scene().node("node-a").slice([{"name": "gpu-7", **needs}], pool="fabric", allNodes=True)
    result = {"request": "gpu", **device, **needs}
    scene.claim("fabric-gpu", claim(exactly("gpu")), [result], node="node-a", users=["infer"])
    status = scene.objects["claims"][-1]["status"]
    status["allocation"]["allocationTimestamp"] = since
    if conditions:
        status["devices"] = [{**device, "conditions": list(conditions)}]
    return scene.waits("infer", {"fabric-gpu": None})


def not_attached_yet() -> Scene:
    return attached()


def not_attached_in_time() -> Scene:
    return attached(since="2027-01-15T07:45:00Z")


def cannot_be_attached() -> Scene:
    message = "no free port on switch 3"
    return attached({"type": "AttachFailed", "status": "True", "message": message})


def no_scheduler() -> Scene:
    made = {"creationTimestamp": "2027-01-15T07:59:25Z"}
    return Scene("dgx-h100=1").leases().waits("train", {"mine": gpus(cls=NVIDIA)}, metadata=made)


def scheduler_down() -> Scene:
    spec = {"holderIdentity": "cp-1", "leaseDurationSeconds": 15}
    lease = {
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {**spec, "renewTime": "2027-01-15T07:30:00Z"},
    }
    made = {"creationTimestamp": "2027-01-15T07:59:25Z"}
    return Scene("dgx-h100=1").leases(lease).waits("serve", cpu=1, metadata=made)


SCENARIOS = (
    Scenario(
        name="the queue has not admitted the training yet",
        scene=not_admitted,
        reason=Reason.GATED,
        says="held back by a scheduling gate: kueue.x-k8s.io/admission",
        remedies=("Remove the scheduling gate kueue.x-k8s.io/admission.",),
    ),
    Scenario(
        name="the pod is gated and would not fit either",
        scene=gated_and_full,
        reason=Reason.GATED,
        says="2 scheduling gates: example.com/budget and example.com/licence",
    ),
    Scenario(
        name="the gate of the queue was removed, and no quota covers the pod",
        scene=not_covered,
        reason=Reason.NOT_CHARGED,
        says="No quota covers the pod: pod llama has no Workload that is admitted.",
    ),
    Scenario(
        name="the pod is left to Volcano, which is not installed",
        scene=left_to_volcano,
        reason=Reason.OTHER_SCHEDULER,
        says='left to the scheduler "volcano"; Drayman serves "default-scheduler", "drayman" and "kai-scheduler".',
        remedies=("Leave the pod to default-scheduler instead of volcano.",),
    ),
    Scenario(
        name="the scheduler was left out and no other was started",
        scene=no_scheduler,
        reason=Reason.NO_SCHEDULER,
        says=(
            'No scheduler runs for pods with the schedulerName "default-scheduler"',
            "none holds a Lease in kube-system",
            "The pod can go to node dgx-h100-0",
        ),
        funnels={"gpus": "node fit 1/20, class 1/8, free 1/8, taints 1/8, count 1/8"},
        plays=False,
    ),
    Scenario(
        name="the machine of the scheduler is down",
        scene=scheduler_down,
        reason=Reason.NO_SCHEDULER,
        says="Lease kube-system/kube-scheduler was last renewed at 2027-01-15T07:30:00Z by cp-1.",
        plays=False,
    ),
    Scenario(
        name="the pod was deleted before it got a node",
        scene=leaving,
        reason=Reason.TERMINATING,
        says="is being deleted.",
    ),
    Scenario(
        name="the pod was deleted and still has its node",
        scene=leaving_its_node,
        reason=Reason.TERMINATING,
        says="being deleted and still on node dgx-h100-0",
    ),
    Scenario(
        name="the image of a container is not on its node",
        scene=image_is_missing,
        reason=Reason.NOT_STARTED,
        says='main waits (ErrImageNeverPull): Container image "train:1" is missing.',
    ),
    Scenario(
        name="the name of the claim is misspelt",
        scene=claim_misspelt,
        reason=Reason.CLAIM_MISSING,
        says='claim "trainning-gpus" does not exist',
        remedies=(
            "Use claim training-gpus in entry trainning-gpus, as there is no trainning-gpus.",
        ),
    ),
    Scenario(
        name="a template is named as a claim",
        scene=template_as_claim,
        reason=Reason.CLAIM_MISSING,
        says='claim "four-gpus" does not exist',
        remedies=("Name four-gpus as a template in entry four-gpus, as it is not a claim.",),
    ),
    Scenario(
        name="nobody has made the claim",
        scene=claim_never_made,
        reason=Reason.CLAIM_MISSING,
        says='claim "training-gpus" does not exist',
    ),
    Scenario(
        name="the name of the template is misspelt",
        scene=template_misspelt,
        reason=Reason.TEMPLATE_MISSING,
        says=("entry gpus", "template four-gpu, which does not exist"),
        remedies=("Use template four-gpus in entry gpus, as there is no four-gpu.",),
    ),
    Scenario(
        name="a claim is named as a template",
        scene=claim_as_template,
        reason=Reason.TEMPLATE_MISSING,
        says=("entry gpus", "template training-gpus, which does not exist"),
        remedies=("Name training-gpus as a claim in entry gpus, as it is not a template.",),
    ),
    Scenario(
        name="the template is in another namespace",
        scene=template_elsewhere,
        reason=Reason.TEMPLATE_MISSING,
        says="template four-gpus, which does not exist in namespace default",
    ),
    Scenario(
        name="the controller has still to make the claim of the group",
        scene=claim_of_the_group,
        reason=Reason.CLAIM_PENDING,
        says=("entry channel", "shares with its group", "template one-channel"),
    ),
    Scenario(
        name="the name of the pod group is misspelt",
        scene=group_misspelt,
        reason=Reason.POD_GROUP_MISSING,
        says="Pod group default/rings does not exist",
        remedies=("Put the pod into the group ring, as there is no rings.",),
    ),
    Scenario(
        name="the shared claim is being deleted",
        scene=claim_on_its_way_out,
        reason=Reason.CLAIM_DELETING,
        says="Claim shared-gpus is being deleted",
    ),
    Scenario(
        name="the claim was made for an earlier pod of the same name",
        scene=claim_of_an_earlier_pod,
        reason=Reason.CLAIM_FOREIGN,
        says="Claim llama-gpus-x7k2p has the name of the pod's claim, but was created for another owner",
    ),
    Scenario(
        name="an earlier attempt has left a claim for extended resources",
        scene=leftover,
        reason=Reason.CLAIM_LEFT_BEHIND,
        says=("Claim llama-extended-resources-8xkcd", "left over from an earlier attempt"),
        plays=False,
        funnels={
            "container-0-request-0": "node fit 1/4, class 1/4, free 1/4, taints 1/4, count 1/4"
        },
        remedies=(
            "Delete claim default/llama-extended-resources-8xkcd, which an earlier attempt has left behind.",
        ),
    ),
    Scenario(
        name="the volume with the data is not bound yet",
        scene=volume_not_bound,
        reason=Reason.VOLUME_UNBOUND,
        says="Volume claim imagenet is not bound to a volume yet",
        fit="volumes 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "a volume claim of the pod has no volume; its devices would do",
            devices=EIGHT,
        ),
    ),
    Scenario(
        name="the volume with the data is being provisioned",
        scene=volume_being_made,
        reason=Reason.VOLUME_UNBOUND,
        says="Volume claim imagenet has yet to get a volume for node dgx-h100-0",
        plays=False,
    ),
    Scenario(
        name="nobody has made the volume claim",
        scene=no_volume_claim,
        reason=Reason.VOLUME_UNBOUND,
        says="Volume claim imagenet does not exist in namespace default",
        fit="volumes 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            'persistentvolumeclaim "imagenet" not found; its devices would do',
            devices=EIGHT,
        ),
    ),
    Scenario(
        name="the fabric has still to attach the GPU",
        scene=not_attached_yet,
        reason=Reason.DEVICES_NOT_READY,
        says=("Claim fabric-gpu", "gpu.example.com/fabric/gpu-7 (Attached)"),
    ),
    Scenario(
        name="the fabric has not attached the GPU in time",
        scene=not_attached_in_time,
        reason=Reason.BINDING_FAILED,
        says=("not made ready within 10 minutes", "gpu-7 (Attached)"),
    ),
    Scenario(
        name="the fabric cannot attach the GPU",
        scene=cannot_be_attached,
        reason=Reason.BINDING_FAILED,
        says=("Claim fabric-gpu", "reports AttachFailed: no free port on switch 3"),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
