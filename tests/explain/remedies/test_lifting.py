"""Remedies that lift what somebody has said, or has still to say: each is applied, and then the pod fits."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.explain.remedies import remedies_for_job
from explain.applying import apply
from explain.remedies.cluster import Cluster, asking, checked, gpus, report_on
from oracle.selectors import GPU

BUSY = {"key": "team", "value": "research", "effect": "NoSchedule"}


def commands(cluster: Cluster) -> list[str]:
    return [line for remedy in report_on(cluster.world()).remedies for line in remedy.commands]


def test_a_node_that_is_cordoned() -> None:
    """The node that has what is needed is uncordoned, with the taint that Kubernetes gives cordoned nodes."""
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    cluster = Cluster().node("n1", unschedulable=True).node("n2", 2, unschedulable=True)
    cluster.node("n3", 2, unschedulable=True, taints=[cordon]).holder("a", "n2", "0 1")
    cluster.template("wanted", asking(count=2)).waiting()
    assert checked(cluster) == ["Uncordon node n3."]
    assert commands(cluster) == ["kubectl uncordon n3"]


def test_a_node_that_is_tainted() -> None:
    """The taint is taken off, or tolerated; a pod that exists may get a toleration."""
    cluster = Cluster().node("n1", taints=[BUSY]).waiting()
    assert checked(cluster) == [
        "Take the taint team=research:NoSchedule off node n1.",
        "Tolerate the taint team=research:NoSchedule of nodes in the pod.",
    ]
    assert commands(cluster) == [
        "kubectl taint nodes n1 team=research:NoSchedule-",
        "kubectl patch pod waiting -n default --type=json -p '"
        '[{"op":"add","path":"/spec/tolerations","value":'
        '[{"key":"team","operator":"Equal","value":"research","effect":"NoSchedule"}]}]'
        "'",
    ]


def test_a_taint_among_others() -> None:
    """Taints that are tolerated stay, and so do tolerations."""
    other = {"key": "gpu", "effect": "NoExecute"}
    cluster = Cluster().node("n1", taints=[other, BUSY])
    cluster.waiting(tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert checked(cluster) == [
        "Take the taint team=research:NoSchedule off node n1.",
        "Tolerate the taint team=research:NoSchedule of nodes in the pod.",
    ]


def test_a_node_that_is_not_ready() -> None:
    """Taints that say how a node is are not to be taken off by hand."""
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert checked(Cluster().node("n1", taints=[taint]).waiting()) == []


def test_a_rule_that_taints_devices() -> None:
    """The one rule that is in the way is deleted, or its taint tolerated; rules that do not matter stay."""
    cluster = Cluster().node("n1", 2).taint_rule("repair", "broken", driver=GPU, pool="n1")
    cluster.taint_rule("elsewhere", "broken", driver=GPU, pool="n2")
    cluster.template("wanted", asking()).waiting()
    assert checked(cluster) == [
        "Delete the device taint rule repair.",
        "Tolerate the taint broken:NoSchedule of devices in request gpus of template wanted.",
    ]
    assert commands(cluster) == ["kubectl delete devicetaintrule repair"]


def test_taints_that_a_driver_publishes() -> None:
    """As few devices as are needed lose their taints."""
    taint = {"key": "ecc", "value": "errors", "effect": "NoExecute"}
    cluster = Cluster().node("n1", [*gpus(1), *gpus(3, taints=[taint])[1:]])
    cluster.template("wanted", asking(count=2)).waiting()
    found = checked(cluster)
    assert found[0] == f"Have driver {GPU} take the taints off gpu-2 of n1."
    assert (
        "Tolerate the taint ecc=errors:NoExecute of devices in request gpus of template wanted."
        in found
    )


def test_taints_of_both_kinds() -> None:
    """A device that a rule and its driver taint needs both to be lifted."""
    taint = {"key": "ecc", "value": "errors", "effect": "NoSchedule"}
    cluster = Cluster().node("n1", gpus(1, taints=[taint]))
    cluster.taint_rule("repair", "broken", driver=GPU)
    cluster.template("wanted", asking()).waiting()
    assert checked(cluster) == [
        f"Delete the device taint rule repair and have driver {GPU} take the taints off gpu-0 of n1.",
        "Tolerate the taints ecc=errors:NoSchedule and broken:NoSchedule of devices"
        " in request gpus of template wanted.",
    ]


def test_gates() -> None:
    """A gated pod that would fit is let go."""
    cluster = Cluster().node("n1", 1).template("wanted", asking())
    cluster.waiting(schedulingGates=[{"name": "example.com/quota"}])
    assert checked(cluster) == ["Remove the scheduling gate example.com/quota."]
    assert commands(cluster) == [
        "kubectl patch pod waiting -n default --type=json"
        ' -p \'[{"op":"remove","path":"/spec/schedulingGates"}]\''
    ]


def test_gates_of_a_pod_that_does_not_fit() -> None:
    """A gate is not to be removed for a pod that would wait all the same."""
    cluster = Cluster().node("n1", 1).template("wanted", asking(count=2))
    assert checked(cluster.waiting(schedulingGates=[{"name": "example.com/quota"}])) == []


def test_a_scheduler_that_is_not_there() -> None:
    """A pod that is left to another scheduler can be left to the default one."""
    cluster = Cluster().node("n1").waiting(schedulerName="best-scheduler")
    assert checked(cluster) == ["Leave the pod to default-scheduler instead of best-scheduler."]


@pytest.mark.parametrize(
    ("entry", "want"),
    [
        pytest.param(
            {"resourceClaimName": "shraed"},
            "Use claim shared in entry gpus, as there is no shraed.",
            id="a claim of a similar name",
        ),
        pytest.param(
            {"resourceClaimTemplateName": "wnted"},
            "Use template wanted in entry gpus, as there is no wnted.",
            id="a template of a similar name",
        ),
        pytest.param(
            {"resourceClaimName": "wanted"},
            "Name wanted as a template in entry gpus, as it is not a claim.",
            id="a template instead of a claim",
        ),
        pytest.param(
            {"resourceClaimTemplateName": "shared"},
            "Name shared as a claim in entry gpus, as it is not a template.",
            id="a claim instead of a template",
        ),
    ],
)
def test_names_that_stand_for_nothing(entry: dict[str, Any], want: str) -> None:
    """What exists under nearly that name, or as the other kind, is tried in its place."""
    cluster = Cluster().node("n1", 1).template("wanted", asking()).claim("shared", asking())
    cluster.waiting(resourceClaims=[{"name": "gpus", **entry}])
    assert checked(cluster) == [want]


def test_a_job_that_is_suspended() -> None:
    """A suspended job is resumed if a pod of it would fit."""
    cluster = Cluster().node("n1", 1).template("wanted", asking())
    entries = [{"name": "gpus", "resourceClaimTemplateName": "wanted"}]
    spec = {"containers": [{"name": "main"}], "resourceClaims": entries}
    cluster.job("held", suspend=True, template={"spec": spec})
    world = cluster.world()
    (remedy,) = remedies_for_job(world, world.objects.jobs[0]).remedies
    assert (remedy.sentence, remedy.node) == ("Resume the job.", "n1")
    assert not apply(world.objects, remedy).jobs[0].spec.suspend
    world = cluster.holder("a", "n1", "0").world()
    assert remedies_for_job(world, world.objects.jobs[0]).remedies == ()


def test_a_claim_that_an_earlier_attempt_has_left() -> None:
    """A claim for extended resources of the pod itself is in its way, and deleted."""
    cluster = Cluster().node("n1", 1)
    cluster.device_class("accelerator", extendedResourceName="example.com/gpu")
    cluster.waiting(extended={"example.com/gpu": "1"})
    cluster.claim("left", asking(), owner="waiting", extended=True)
    assert checked(cluster) == [
        "Delete claim default/left, which an earlier attempt has left behind."
    ]
