"""The engine asks for prices flavor by flavor where they depend on devices: a mixed fleet charges each flavor by its own."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert, to_dict
from drayman.api.core import Namespace
from drayman.api.kueue import ClusterQueue, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Workload
from drayman.api.resource import ResourceSlice
from drayman.apiserver.instance.queue_metrics import QueueMetrics
from drayman.controllers.quota.tally import QueueTally
from drayman.placement.state import ClusterState
from drayman.quota.charging.rules import KUEUE, Rules
from drayman.quota.decisions import Refused, Reserved
from drayman.quota.settings import settings_of
from drayman.quota.state import QuotaState
from oracle.build import device, exactly, partitioned
from oracle.selectors import GPU
from quota.charging.pricing_cases import GI, cluster, pricing
from quota.charging.test_in_the_engine import named, pod_set
from quota.charging.test_limitations_are_lifted import claim

SIZES = {"small": 5, "large": 80}
"""Of the only device of a node, in GiB; nodes, flavors and labels are called the same."""
NODES = [{"metadata": {"name": size, "labels": {"size": size}}} for size in (*SIZES, "medium")]


def slices(name: str, number: int, *taints: str) -> list[dict[str, Any]]:
    counters = {"c": {"memory": "800Gi"}}
    spends = {"c": {"memory": f"{SIZES.get(name, 40)}Gi"}}
    given = [{"key": key, "effect": "NoSchedule"} for key in taints]
    made = [device(f"{name}-{n}", spends=spends, taints=given) for n in range(number)]
    return partitioned(made, counters, pool=name, nodeName=name)


def fleet(**more: Any) -> ClusterState:
    devices = [each for name in SIZES for each in slices(name, 2)]
    return cluster(*devices, templates={"t": [exactly(cls="mig")]}, nodes=NODES, **more)


def engine(
    state: ClusterState, *flavors: str, quota: int = 100, rules: Rules | None = None
) -> QuotaState:
    """A queue with so many GiB in each of some flavors."""
    made = QuotaState(settings_of({}), pricing(state, rules=rules))
    made.set_namespace(convert(Namespace, {"metadata": {"name": "default"}}))
    for name in flavors:
        made.set_flavor(convert(ResourceFlavor, named(name, nodeLabels={"size": name})))
    resources = [{"name": "gpu.memory", "nominalQuota": f"{quota}Gi"}]
    offered = [{"name": name, "resources": resources} for name in flavors]
    groups = [{"coveredResources": ["gpu.memory"], "flavors": offered}]
    queue = named("q", namespaceSelector={}, resourceGroups=groups)
    made.set_cluster_queue(convert(ClusterQueue, queue), 0.0)
    made.set_local_queue(convert(LocalQueue, named("q", clusterQueue="q")), 0.0)
    return made


def submit(made: QuotaState, name: str, *sets: dict[str, Any]) -> None:
    body = named(name, queueName="q", podSets=list(sets))
    made.set_workload(convert(Workload, body), 0.0)


def given(made: QuotaState) -> tuple[str, int]:
    """The flavor of the only one that gets quota, and what it pays, in GiB."""
    (decision,) = made.cycle(1.0)
    assert isinstance(decision, Reserved), decision
    (assigned,) = decision.admission.pod_set_assignments
    amount = int(assigned.resource_usage["gpu.memory"].amount)
    return assigned.flavors["gpu.memory"], amount // GI


def test_each_flavor_has_its_price() -> None:
    """What costs five where it goes is charged five, though there are devices of eighty elsewhere."""
    for order in (("small", "large"), ("large", "small")):
        made = engine(fleet(), *order)
        submit(made, "w", pod_set("main", 1, "t"))
        assert given(made) == (order[0], SIZES[order[0]])


def test_a_price_that_fits_in_one_flavor_does_not_have_to_fit_in_all() -> None:
    """Quota for ten is enough for what costs five."""
    made = engine(fleet(), "large", "small", quota=10)
    submit(made, "w", pod_set("main", 2, "t"))
    assert given(made) == ("small", 10)


def test_by_kueues_rules_there_is_one_price() -> None:
    """The dearest device of the cluster, in every flavor."""
    made = engine(fleet(), "small", rules=KUEUE)
    submit(made, "w", pod_set("main", 1, "t"))
    assert given(made) == ("small", 80)


def test_a_flavor_without_devices_is_not_given_and_comes_into_question_with_them() -> None:
    """What waits is tried again when they are there, and untainted: also those whose turn it was not."""
    state = fleet()
    made = engine(state, "medium")
    for name in ("w1", "w2"):
        submit(made, name, pod_set("main", 1, "t"))
    (refused,) = made.cycle(1.0)
    assert isinstance(refused, Refused)
    assert refused.reason == "NoMatchingFlavor"
    assert "flavor medium: " in refused.message
    assert "1 wanted, 0 match" in refused.message
    made.remove_workload("default/w1")
    for taints in (("example.com/new",), ()):
        for each in slices("medium", 1, *taints):
            state.set_slice(convert(ResourceSlice, each))
        made.devices_changed("default/w2")
        if taints:
            (refused,) = made.cycle(1.0)
            assert isinstance(refused, Refused)
            assert "1 tainted" in refused.message
    assert given(made) == ("medium", 40)


def test_flavors_that_change_their_labels_change_their_price() -> None:
    """The workload waits in a flavor that is too dear for it, until that is another one."""
    made = engine(fleet(), "large", quota=10)
    submit(made, "w", pod_set("main", 1, "t"))
    (refused,) = made.cycle(1.0)
    assert isinstance(refused, Refused)
    made.set_flavor(convert(ResourceFlavor, named("large", nodeLabels={"size": "small"})))
    assert given(made) == ("large", 5)


def test_pod_sets_may_have_different_flavors() -> None:
    """Each set is charged by the devices of its own."""
    made = engine(fleet(), "small", "large", quota=80)
    sets = [pod_set("a", 1, "t"), pod_set("b", 1, "t")]
    sets[1]["template"]["spec"]["nodeSelector"] = {"size": "large"}
    submit(made, "w", *sets)
    (decision,) = made.cycle(1.0)
    assert isinstance(decision, Reserved), decision
    assert {
        each.name: (each.flavors["gpu.memory"], str(each.resource_usage["gpu.memory"]))
        for each in decision.admission.pod_set_assignments
    } == {"a": ("small", str(5 * GI)), "b": ("large", str(80 * GI))}


def test_a_claim_has_the_price_of_the_flavor_of_its_first_user() -> None:
    """Others pay their part of that, whatever it would have cost them."""
    made = engine(fleet(claims=[claim("c", exactly(cls="mig"))]), "small", "large")
    submit(made, "a", pod_set("main", 1, claims=("c",)))
    assert given(made) == ("small", 5)
    submit(made, "b", pod_set("main", 1, claims=("c",)))
    assert given(made) == ("small", 0)
    made.remove_workload("default/a")
    holding = made.entries["default/b"].holding
    assert holding is not None
    assert sum(holding.usage.quota.values()) == 5 * GI


def test_a_claim_with_devices_leads_to_their_flavor() -> None:
    """Pods that name it cannot run anywhere else."""
    body = claim("c", exactly("r", cls="mig"))
    result = {"driver": GPU, "pool": "large", "device": "large-0", "request": "r"}
    body["status"] = {"allocation": {"devices": {"results": [result]}}}
    made = engine(fleet(claims=[body]), "small", "large")
    submit(made, "w", pod_set("main", 1, claims=("c",)))
    assert given(made) == ("large", 80)


def test_admin_access_costs_nothing_and_is_counted() -> None:
    """For each queue, in the metrics: what its workloads look at."""
    state = fleet()
    looks = [exactly("r", 2, cls="mig", admin=True)]
    more = cluster(templates={"look": looks}).find_template("default", "look")
    assert more is not None
    state.set_template(more)
    made = engine(state, "small")
    submit(made, "w", pod_set("main", 3, "look"))
    (decision,) = made.cycle(1.0)
    assert isinstance(decision, Reserved), decision
    assert to_dict(decision.admission)["podSetAssignments"][0].get("resourceUsage", {}) == {}
    metrics = QueueMetrics(QueueTally(state=lambda: made)).collect()
    (found,) = [each for each in metrics if each.name == "drayman_queue_admin_access_devices"]
    labels = {"cluster_queue": "q", "replica_role": "standalone"}
    assert [(each.labels, each.value) for each in found.samples] == [(labels, 6)]
