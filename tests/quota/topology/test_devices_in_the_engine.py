"""The engine places pods with claims where there are devices for them."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Namespace
from drayman.api.custom_groups import KueueTopology
from drayman.api.kueue import ClusterQueue, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Workload
from drayman.api.resource import ResourceClaimTemplate
from drayman.placement.state import ClusterState
from drayman.quota.decisions import Decision, Refused, Reserved
from drayman.quota.settings import settings_of
from drayman.quota.state import QuotaState
from drayman.quota.topology.assignments import placement_of
from drayman.quota.topology.devices import DeviceCounter
from oracle.build import exactly
from placement.domains.cluster import HOST, RACK
from quota.topology.test_devices import cluster

MOMENT = "2026-01-01T00:00:00Z"


def named(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "creationTimestamp": MOMENT}
    return {"metadata": metadata, "spec": spec}


def make_engine(state: ClusterState) -> QuotaState:
    """A queue with plenty of quota, and a flavor with racks."""
    engine = QuotaState(settings_of({}))
    engine.set_namespace(convert(Namespace, {"metadata": {"name": "default"}}))
    levels = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
    engine.set_topology(convert(KueueTopology, named("t", levels=levels)))
    for node in state.nodes.values():
        engine.set_node(node.node)
    engine.set_flavor(convert(ResourceFlavor, named("f", topologyName="t")))
    quota = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "100"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    queue = named("q", namespaceSelector={}, resourceGroups=groups)
    engine.set_cluster_queue(convert(ClusterQueue, queue), 0.0)
    engine.set_local_queue(convert(LocalQueue, named("l", clusterQueue="q")), 0.0)
    engine.books.ledger.topologies.counter = DeviceCounter(state)
    return engine


def make_workload(name: str, count: int, template: str) -> Workload:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    entry = {"name": "gpu", "resourceClaimTemplateName": template}
    pod = {"spec": {"containers": [container], "resourceClaims": [entry]}}
    request = {"required": RACK}
    sets = [{"name": "main", "count": count, "template": pod, "topologyRequest": request}]
    made = named(name, queueName="l", podSets=sets)
    made["metadata"]["uid"] = name
    return convert(Workload, made)


def add_template(state: ClusterState, name: str, count: int) -> None:
    spec = {"spec": {"devices": {"requests": [exactly(count=count)]}}}
    metadata = {"name": name, "namespace": "default"}
    state.set_template(convert(ResourceClaimTemplate, {"metadata": metadata, "spec": spec}))


def tried(engine: QuotaState, workload: Workload) -> list[Decision]:
    engine.set_workload(workload, 0.0)
    return list(engine.cycle(1.0))


def test_the_rack_that_has_the_devices_is_chosen() -> None:
    """The tighter rack by processors has none."""
    state = cluster({"a": [0], "b": [2, 3]})
    add_template(state, "one", 1)
    (decision,) = tried(make_engine(state), make_workload("w", 5, "one"))
    assert isinstance(decision, Reserved)
    assignment = decision.admission.pod_set_assignments[0].topology_assignment
    assert assignment is not None
    assert dict(placement_of(assignment).domains) == {("b-0",): 2, ("b-1",): 3}


def test_what_no_rack_has_devices_for_waits_with_the_figures() -> None:
    """How many pods a rack has devices for; and that a template is missing."""
    state = cluster({"a": [0], "b": [2, 3]})
    add_template(state, "two", 2)
    engine = make_engine(state)
    (decision,) = tried(engine, make_workload("w", 3, "two"))
    assert isinstance(decision, Refused)
    assert "only 2 out of 3 pods" in decision.message
    assert "limited by devices" in decision.message
    (missing,) = tried(engine, make_workload("x", 1, "absent"))
    assert isinstance(missing, Refused)
    assert "absent" in missing.message


def test_workloads_with_other_claims_are_tried_for_themselves() -> None:
    """One that asks for two devices for each pod does not stand for one that asks for one, though they cost the same."""
    state = cluster({"b": [2, 3]})
    add_template(state, "one", 1)
    add_template(state, "two", 2)
    engine = make_engine(state)
    (large,) = tried(engine, make_workload("large", 3, "two"))
    (small,) = tried(engine, make_workload("small", 3, "one"))
    assert isinstance(large, Refused)
    assert isinstance(small, Reserved)
