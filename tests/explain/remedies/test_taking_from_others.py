"""Remedies by which others give something back: each is applied, and then the pod fits."""

from __future__ import annotations

from explain.remedies.cluster import Cluster, asking, checked, report_on

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def full(devices: int = 4) -> Cluster:
    return Cluster().node("n1", devices).template("wanted", asking())


def test_the_least_important() -> None:
    """The pod of the lowest priority goes, even if it is another's."""
    cluster = full(2).holder("a", "n1", "0", priority=5).waiting()
    cluster.holder("b", "n1", "1", priority=1, namespace="other")
    assert checked(cluster) == ["Delete pod other/b."]
    (remedy,) = report_on(cluster.world()).remedies
    assert remedy.commands == ("kubectl delete pod b -n other",)
    assert remedy.node == "n1"
    assert [device.rpartition("/")[2] for device in remedy.devices] == ["gpu-1"]


def test_as_few_as_possible_and_no_more_than_needed() -> None:
    """Among equals one pod with enough goes rather than several, and one with one device rather than with many."""
    several = Cluster().node("n1", 6).template("wanted", asking(count=3)).waiting()
    several.holder("large", "n1", "0 1 2")
    for number in (3, 4, 5):
        several.holder(f"small-{number}", "n1", str(number))
    assert "Delete pod default/large." in checked(several)
    one = full(4).holder("large", "n1", "0 1 2").holder("small", "n1", "3").waiting()
    assert checked(one) == ["Delete pod default/small."]


def test_ones_own_before_others() -> None:
    """Among equals pods of the asker's own namespace go."""
    cluster = full(2).holder("a", "n1", "0", namespace="other").holder("b", "n1", "1").waiting()
    assert checked(cluster) == ["Delete pod default/b."]


def test_the_cheapest_node() -> None:
    """Of several nodes the one where the least important pods are in the way."""
    cluster = full(1).node("n2", 1).node("n3", 1).waiting()
    cluster.holder("a", "n1", "0", priority=3).holder("b", "n2", "0", priority=1)
    cluster.holder("c", "n3", "0", priority=2)
    assert checked(cluster) == ["Delete pod default/b."]


def test_pods_that_share_a_claim_go_together() -> None:
    """A claim gives back its devices only when all who use it are gone."""
    cluster = full(1).waiting().holder("a", "n1", claim="both").holder("b", "n1", claim="both")
    cluster.held_claim("both", "n1", "0", ["a", "b"])
    assert checked(cluster) == ["Delete pods default/a and default/b."]


def test_a_claim_of_a_group_stays_with_the_group() -> None:
    """The group keeps its claim when its pods are gone: to delete them frees only what they use themselves."""
    member = {"claim": "shared", "schedulingGroup": {"podGroupName": "g"}}
    devices = full(1).waiting().holder("a", "n1", **member)
    assert checked(devices.held_claim("shared", "n1", "0", group="g")) == []
    cpu = Cluster().node("n1", 1, cpu=4).holder("a", "n1", cpu="3", **member).waiting(cpu="4")
    assert "Delete pod default/a." in checked(cpu.held_claim("shared", "n1", "0", group="g"))


def test_pods_that_nobody_may_see_are_not_named() -> None:
    """Where a user of a claim cannot be seen, the claim cannot be freed."""
    cluster = full(1).waiting().held_claim("hidden", "n1", "0", ["of-somebody-else"])
    assert checked(cluster) == []


def test_a_claim_that_no_pod_uses() -> None:
    """A claim with devices and without pods is deleted by itself."""
    cluster = full(1).waiting().held_claim("left", "n1", "0")
    assert checked(cluster) == ["Delete claim default/left, which no pod uses."]


def test_pods_that_would_come_back_at_once() -> None:
    """Pods of a daemon set are no room; those of other owners are, with a warning."""
    assert checked(full(1).holder("a", "n1", "0", owner="DaemonSet").waiting()) == []
    cluster = full(1).holder("a", "n1", "0", owner="ReplicaSet").waiting()
    assert checked(cluster) == [
        "Delete pod default/a, and scale down replicaset/a, which would recreate it."
    ]


def test_a_replica_set_of_a_deployment() -> None:
    """It is the deployment that has to be scaled down: it would scale its replica set up again."""
    labels = {"pod-template-hash": "5d7f9c"}
    cluster = full(1).holder("web", "n1", "0", owner="ReplicaSet", labels=labels).waiting()
    assert checked(cluster) == [
        "Delete pod default/web, and scale down deployment/web, which would recreate it."
    ]


def test_a_pod_that_is_going_anyway() -> None:
    """A pod that is being deleted is waited for, whatever its priority."""
    cluster = full(2).holder("a", "n1", "0", priority=9, deleted="2027-01-15T07:59:00Z").waiting()
    cluster.holder("b", "n1", "1")
    assert checked(cluster) == ["Wait for pod default/a, which is being deleted."]


def test_processors_count_too() -> None:
    """Pods without devices are in the way where a node has too little else."""
    cluster = Cluster().node("n1", cpu=4).holder("a", "n1", cpu="1").holder("b", "n1", cpu="3")
    found = checked(cluster.waiting(cpu="4"))
    assert "Delete pods default/a and default/b." in found


def test_a_neighbour_that_is_not_wanted() -> None:
    """A pod that keeps others away by anti-affinity can go."""
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    keeps_away = {"podAntiAffinity": {REQUIRED: [term]}}
    cluster = Cluster().node("n1", labels={"kubernetes.io/hostname": "n1"})
    cluster.holder("a", "n1", affinity=keeps_away).waiting(labels={"app": "db"})
    assert checked(cluster) == ["Delete pod default/a."]


def test_a_job_that_ends() -> None:
    """Jobs are waited for, the first to end first; its pods could be deleted as well."""
    cluster = (
        full(3).job("late", activeDeadlineSeconds=7200).job("soon").job("open-ended").waiting()
    )
    cluster.holder("a", "n1", "0", job="late")
    lasts = {"drayman.dev/run-for": "61m"}
    cluster.holder("b", "n1", "1", job="soon", annotations=lasts, restartPolicy="Never")
    cluster.holder("c", "n1", "2", job="open-ended")
    found = checked(cluster)
    assert found[:2] == [
        "Wait for the end of job default/soon, which is at 2027-01-15T08:01:00Z at the latest.",
        "Wait for the end of job default/late, which is at 2027-01-15T09:00:00Z at the latest.",
    ]
    remedy = report_on(cluster.world()).remedies[0]
    assert remedy.commands == (
        "kubectl wait --for=condition=complete job/soon -n default --timeout=-1s",
    )


def test_a_job_that_says_how_long_its_pods_run() -> None:
    """What a Job declares for its pods counts like what they declare themselves."""
    lasts = {"drayman.dev/runtime": "61m"}
    cluster = full(1).job("soon", annotations=lasts).waiting()
    cluster.holder("a", "n1", "0", job="soon", restartPolicy="Never")
    assert checked(cluster)[0] == (
        "Wait for the end of job default/soon, which is at 2027-01-15T08:01:00Z at the latest."
    )


def test_a_job_whose_pods_are_followed_by_others() -> None:
    """How long pods run does not tell when a job ends that makes more of them."""
    cluster = full(1).job("long", completions=5, parallelism=1).waiting()
    cluster.holder("a", "n1", "0", job="long", annotations={"drayman.dev/run-for": "61m"})
    assert checked(cluster)[0] == "Wait for the end of job default/long."


def test_several_jobs_where_one_is_not_enough() -> None:
    """Jobs that together have what is needed are waited for together."""
    cluster = Cluster().node("n1", 2).template("wanted", asking(count=2)).waiting()
    cluster.job("one").job("two").holder("a", "n1", "0", job="one").holder(
        "b", "n1", "1", job="two"
    )
    assert "Wait for the end of jobs default/one and default/two." in checked(cluster)


def test_a_claim_that_is_where_the_pod_cannot_go() -> None:
    """Without those who use it, a claim that is held elsewhere is allocated where the pod can go."""
    cluster = Cluster().node("n1", 1, labels={"pool": "a"}).node("n2", 1, labels={"pool": "b"})
    cluster.holder("user", "n1", "0", claim="shared")
    entries = [{"name": "gpus", "resourceClaimName": "shared"}]
    cluster.waiting(resourceClaims=entries, nodeSelector={"pool": "b"})
    assert checked(cluster) == [
        "Delete pod default/user so that claim shared can move.",
        "Drop pool=b from the pod's node selector.",
    ]
