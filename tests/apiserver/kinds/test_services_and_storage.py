"""Services and storage: what is refused, one broken rule at a time."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.kinds.circumstances import NOW, created, make_context, refusals, resource_of
from drayman.apiserver.served.strategy import Object

Causes = set[tuple[str, str]]
TEMPLATE: Object = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "main", "image": "i:1"}]},
}
SELECTOR: Object = {"matchLabels": {"a": "b"}}


def make(group: str, kind: str, **members: Any) -> Object:
    resource = resource_of(group, kind)
    metadata = {"name": "x", "namespace": "ns"} if resource.namespaced else {"name": "x"}
    return created(resource, {"metadata": metadata, **copy.deepcopy(members)}, make_context())


def refused(group: str, kind: str, **members: Any) -> Causes:
    obj = make(group, kind, **members)
    return refusals(resource_of(group, kind).strategy.validate(obj, make_context()))


def service(**spec: Any) -> Object:
    return {"spec": {"ports": [{"port": 80}], **spec}}


def claim(**spec: Any) -> Object:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"spec": {**whole, **spec}}


NETWORK_AND_STORAGE: dict[str, tuple[str, str, Object, Causes]] = {
    "name elsewhere": (
        "",
        "Service",
        {"spec": {"type": "ExternalName", "externalName": "A_."}},
        {("spec.externalName", "Invalid")},
    ),
    "labels of pods": (
        "",
        "Service",
        service(selector={"a": "b c"}),
        {("spec.selector", "Invalid")},
    ),
    "sticky for too long": (
        "",
        "Service",
        service(
            sessionAffinity="ClientIP",
            sessionAffinityConfig={"clientIP": {"timeoutSeconds": 86401}},
        ),
        {("spec.sessionAffinityConfig.clientIP.timeoutSeconds", "Invalid")},
    ),
    "addresses outside": (
        "",
        "Service",
        service(externalIPs=["127.0.0.1", "x"]),
        {("spec.externalIPs[0]", "Invalid"), ("spec.externalIPs[1]", "Invalid")},
    ),
    "traffic": (
        "",
        "Service",
        service(
            externalTrafficPolicy="Local",
            internalTrafficPolicy="Some",
            trafficDistribution="Far",
            allocateLoadBalancerNodePorts=True,
            loadBalancerSourceRanges=["x"],
        ),
        {
            ("spec.externalTrafficPolicy", "Invalid"),
            ("spec.internalTrafficPolicy", "NotSupported"),
            ("spec.trafficDistribution", "NotSupported"),
            ("spec.allocateLoadBalancerNodePorts", "Forbidden"),
            ("spec.LoadBalancerSourceRanges", "Forbidden"),
            ("spec.LoadBalancerSourceRanges[0]", "Invalid"),
        },
    ),
    "one node port twice": (
        "",
        "Service",
        {
            "spec": {
                "type": "NodePort",
                "ports": [
                    {"name": "a", "port": 80, "nodePort": 30000, "appProtocol": "a b"},
                    {"name": "b", "port": 81, "nodePort": 30000},
                ],
            }
        },
        {("spec.ports[0].appProtocol", "Invalid"), ("spec.ports[1].nodePort", "Duplicate")},
    ),
    "volume for one pod and for others": (
        "",
        "PersistentVolumeClaim",
        claim(accessModes=["ReadWriteOncePod", "ReadWriteOnce", "x"], storageClassName="A_"),
        {
            ("spec.accessModes", "Forbidden"),
            ("spec.accessModes", "NotSupported"),
            ("spec.storageClassName", "Invalid"),
        },
    ),
    "no storage": (
        "",
        "PersistentVolumeClaim",
        claim(resources={"requests": {"storage": "0"}}),
        {("spec.resources[storage]", "Invalid")},
    ),
    "claims of a stateful set": (
        "apps",
        "StatefulSet",
        {
            "spec": {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {}}],
            }
        },
        {
            ("spec.volumeClaimTemplates[0].spec.accessModes", "Required"),
            ("spec.volumeClaimTemplates[0].spec.resources[storage]", "Required"),
        },
    ),
    "provisioner": (
        "storage.k8s.io",
        "StorageClass",
        {"provisioner": "A b"},
        {("provisioner", "Invalid")},
    ),
    "attributes of nothing": (
        "storage.k8s.io",
        "VolumeAttributesClass",
        {},
        {("driverName", "Required"), ("parameters", "Required")},
    ),
    "attributes": (
        "storage.k8s.io",
        "VolumeAttributesClass",
        {"driverName": "A b", "parameters": {"": "x"}},
        {("driverName", "Invalid"), ("parameters", "Invalid")},
    ),
    "very many attributes": (
        "storage.k8s.io",
        "VolumeAttributesClass",
        {"driverName": "example.com", "parameters": {str(n): "x" for n in range(513)}},
        {("parameters", "TooLong")},
    ),
    "capacity": (
        "storage.k8s.io",
        "CSIStorageCapacity",
        {
            "storageClassName": "A_",
            "capacity": "-1",
            "nodeTopology": {"matchExpressions": [{"key": "a", "operator": "x"}]},
        },
        {
            ("storageClassName", "Invalid"),
            ("capacity", "Invalid"),
            ("nodeTopology.matchExpressions[0].operator", "Invalid"),
        },
    ),
    "template without containers": (
        "",
        "PodTemplate",
        {"template": {"spec": {}}},
        {("template.spec.containers", "Required")},
    ),
    "attachment": (
        "storage.k8s.io",
        "VolumeAttachment",
        {"spec": {"attacher": "A_", "nodeName": "N_", "source": {"persistentVolumeName": "V_"}}},
        {
            ("spec.attacher", "Invalid"),
            ("spec.nodeName", "Invalid"),
            ("spec.source.persistentVolumeName", "Invalid"),
        },
    ),
}


@pytest.mark.parametrize(
    ("group", "kind", "members", "causes"),
    NETWORK_AND_STORAGE.values(),
    ids=NETWORK_AND_STORAGE.keys(),
)
def test_services_and_storage_are_refused_at_their_fields(
    group: str, kind: str, members: Object, causes: Causes
) -> None:
    """Each broken rule is reported at its field."""
    assert refused(group, kind, **members) == causes


def test_a_volume_of_the_cluster_has_the_defaults_of_its_source() -> None:
    """Sources have the same defaults in volumes of pods and in volumes of the cluster."""
    volume = make("", "PersistentVolume", spec={"hostPath": {"path": "/x"}})
    assert volume["spec"]["hostPath"] == {"path": "/x", "type": ""}


CAPACITY: Object = {"storageClassName": "fast", "nodeTopology": SELECTOR, "capacity": "1Gi"}
ATTRIBUTES: Object = {"driverName": "example.com", "parameters": {"iops": "1"}}


@pytest.mark.parametrize(
    ("kind", "before", "change", "causes"),
    [
        ("CSIStorageCapacity", CAPACITY, {"capacity": "2Gi"}, set()),
        ("CSIStorageCapacity", CAPACITY, {"storageClassName": "slow"}, {("storageClassName", "Invalid")}),
        ("CSIStorageCapacity", CAPACITY, {"nodeTopology": None}, {("nodeTopology", "Invalid")}),
        ("VolumeAttributesClass", ATTRIBUTES, {}, set()),
        ("VolumeAttributesClass", ATTRIBUTES, {"driverName": "b"}, {("driverName", "Forbidden")}),
        ("VolumeAttributesClass", ATTRIBUTES, {"parameters": {"a": "b"}}, {("parameters", "Forbidden")}),
    ],
)  # fmt: skip
def test_what_drivers_of_storage_rely_on_stays(
    kind: str, before: Object, change: Object, causes: Causes
) -> None:
    """What was asked for stays; what was found out may change."""
    old = make("storage.k8s.io", kind, **before)
    new = {**copy.deepcopy(old), **change}
    strategy = resource_of("storage.k8s.io", kind).strategy
    assert refusals(strategy.validate_update(new, old, make_context())) == causes


def test_a_pod_template_is_filled_in_like_those_of_workloads() -> None:
    """And shown by its containers, their images and its labels."""
    template = make("", "PodTemplate", template=TEMPLATE)
    assert template["template"]["spec"]["restartPolicy"] == "Always"
    cells = [column.cell(template, NOW) for column in resource_of("", "PodTemplate").columns]
    assert cells == ["x", "main", "i:1", "a=b"]


@pytest.mark.parametrize(
    ("status", "since"),
    [
        ({"phase": "Bound", "lastPhaseTransitionTime": "then"}, "2026-01-02T03:04:05Z"),
        ({"phase": "Bound"}, "2026-01-02T03:04:05Z"),
        ({"phase": "Bound", "lastPhaseTransitionTime": "later"}, "later"),
        ({"phase": "Available", "lastPhaseTransitionTime": "then"}, "then"),
    ],
    ids=["another phase", "and no time", "somebody says when", "the same phase"],
)
def test_a_volume_knows_since_when_it_is_in_its_phase(status: Object, since: str) -> None:
    """The server notes when the phase changes, unless whoever changes it says so."""
    old = make("", "PersistentVolume", spec={"hostPath": {"path": "/x"}})
    old["status"] = {"phase": "Available", "lastPhaseTransitionTime": "then"}
    new = {**copy.deepcopy(old), "status": dict(status)}
    endpoint = resource_of("", "PersistentVolume").subresource("status")
    assert endpoint is not None
    endpoint.strategy.prepare_for_update(new, old, make_context())
    assert new["status"]["lastPhaseTransitionTime"] == since
