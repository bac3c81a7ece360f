"""The engine has workloads priced as a whole: pod sets share claims, and all pods of a workload need devices at the same time."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert, to_dict
from drayman.api.core import Namespace
from drayman.api.kueue import ClusterQueue, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Workload
from drayman.api.quantity import Quantity
from drayman.placement.state import ClusterState
from drayman.quota.decisions import Refused, Reserved
from drayman.quota.settings import settings_of
from drayman.quota.state import QuotaState
from oracle.build import exactly, piece
from quota.charging.pricing_cases import ON_GPU, cluster, pods, pricing
from quota.charging.test_limitations_are_lifted import claim

QUOTA = 10


def named(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": spec}


def engine(state: ClusterState) -> QuotaState:
    """A queue `q` with quota for some GPUs."""
    made = QuotaState(settings_of({}), pricing(state))
    made.set_namespace(convert(Namespace, {"metadata": {"name": "default"}}))
    made.set_flavor(convert(ResourceFlavor, named("f")))
    quota = {"name": "f", "resources": [{"name": "gpus", "nominalQuota": str(QUOTA)}]}
    groups = [{"coveredResources": ["gpus"], "flavors": [quota]}]
    queue = named("q", namespaceSelector={}, resourceGroups=groups)
    made.set_cluster_queue(convert(ClusterQueue, queue), 0.0)
    made.set_local_queue(convert(LocalQueue, named("q", clusterQueue="q")), 0.0)
    return made


def workload(*sets: dict[str, Any], **status: Any) -> Workload:
    made = named("w", queueName="q", podSets=list(sets))
    return convert(Workload, {**made, "status": status})


def pod_set(name: str, count: int, *templates: str, claims: tuple[str, ...] = ()) -> dict[str, Any]:
    template = {"spec": to_dict(pods(*templates, claims=claims).spec)}
    return {"name": name, "count": count, "template": template}


def used(made: QuotaState) -> dict[str, dict[str, Quantity]]:
    (decision,) = made.cycle(1.0)
    assert isinstance(decision, Reserved), decision
    return {each.name: dict(each.resource_usage) for each in decision.admission.pod_set_assignments}


def test_a_claim_that_two_pod_sets_name_is_charged_once() -> None:
    """The first set pays for it; the second pays for claims of its own alone."""
    made = engine(cluster(claims=[claim("c", exactly(count=2))], templates={"t": [exactly()]}))
    sets = [pod_set("a", 3, claims=("c",)), pod_set("b", 2, "t", claims=("c",))]
    made.set_workload(workload(*sets), 0.0)
    assert {name: str(each["gpus"]) for name, each in used(made).items()} == {"a": "2", "b": "2"}


def test_devices_are_needed_for_all_pods() -> None:
    """Two devices match, and three pods want one each: it does not wait for quota that would not help it."""
    state = cluster(piece(["d0", "d1"]), templates={"t": [exactly(select=[ON_GPU])]})
    made = engine(state)
    made.set_workload(workload(pod_set("a", 3, "t")), 0.0)
    assert made.cycle(1.0) == ()
    standing = made.standing("default/w")
    assert isinstance(standing, Refused)
    assert standing.reason == "Misconfigured"
    assert "for each of 3 pods, 2 match" in standing.message


def test_pod_sets_compete_for_devices() -> None:
    """Each of them could have the two devices, and not both of them."""
    state = cluster(piece(["d0", "d1"]), templates={"t": [exactly(count=2, select=[ON_GPU])]})
    made = engine(state)
    made.set_workload(workload(pod_set("a", 1, "t"), pod_set("b", 1, "t")), 0.0)
    standing = made.standing("default/w")
    assert isinstance(standing, Refused)
    assert "the workload asks for 4 devices" in standing.message


def test_pods_that_are_done_need_no_devices() -> None:
    """Of three pods one has ended, and there are devices for two."""
    state = cluster(piece(["d0", "d1"]), templates={"t": [exactly(select=[ON_GPU])]})
    made = engine(state)
    done = [{"name": "a", "count": 1}]
    made.set_workload(workload(pod_set("a", 3, "t"), reclaimablePods=done), 0.0)
    assert {name: str(each["gpus"]) for name, each in used(made).items()} == {"a": "2"}
