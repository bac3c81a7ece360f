"""Pods: the rules of each part of a spec, of a status, and of a resize, one broken rule at a time."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.kinds.circumstances import created, make_context, pod, refusals, resource_of
from drayman.apiserver.served.strategy import Object

PODS = resource_of("", "Pod")
MAIN = "spec.containers[0]"
Causes = set[tuple[str, str]]


def container(**members: Any) -> Object:
    return {"containers": [{"name": "main", "image": "i:1", **members}]}


def volume(**source: Any) -> Object:
    return {"volumes": [{"name": "v", **source}]}


def env(**members: Any) -> Object:
    return container(env=[{"name": "A", **members}])


def field(path: str, version: str = "v1") -> Object:
    return env(valueFrom={"fieldRef": {"apiVersion": version, "fieldPath": path}})


def amount(**reference: Any) -> Object:
    return env(valueFrom={"resourceFieldRef": reference})


def mounted(*mounts: Object, devices: list[Object] | None = None, **members: Any) -> Object:
    return {
        **container(volumeMounts=list(mounts), volumeDevices=devices or [], **members),
        "volumes": [
            {"name": "v", "emptyDir": {}},
            {"name": "p", "persistentVolumeClaim": {"claimName": "c"}},
        ],
    }


def spread(**members: Any) -> Object:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **members}
    return {"topologySpreadConstraints": [whole]}


def together(**term: Any) -> Object:
    whole = {"topologyKey": "zone", **term}
    return {
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [whole]}}
    }


TERM = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
CASES: dict[str, tuple[Object, Causes]] = {
    # environment
    "field of the pod": (field("spec.nodeName"), set()),
    "one label": (field("metadata.labels['a/b']"), set()),
    "bad label": (
        field("metadata.labels['a b']"),
        {(f"{MAIN}.env[0].valueFrom.fieldRef", "Invalid")},
    ),
    "field without a name": (
        field("p"),
        {(f"{MAIN}.env[0].valueFrom.fieldRef.fieldPath", "Invalid")},
    ),
    "field not for variables": (
        field("metadata.labels"),
        {(f"{MAIN}.env[0].valueFrom.fieldRef.fieldPath", "NotSupported")},
    ),
    "field of another version": (
        field("metadata.name", "v2"),
        {(f"{MAIN}.env[0].valueFrom.fieldRef.fieldPath", "Invalid")},
    ),
    "amount": (amount(resource="limits.cpu", divisor="1m"), set()),
    "amount of something else": (
        amount(resource="limits.gpu"),
        {(f"{MAIN}.env[0].valueFrom.resourceFieldRef.resource", "NotSupported")},
    ),
    "divisor of cores": (
        amount(resource="limits.cpu", divisor="2"),
        {(f"{MAIN}.env[0].valueFrom.resourceFieldRef.divisor", "Invalid")},
    ),
    "divisor of bytes": (
        amount(resource="requests.memory", divisor="3"),
        {(f"{MAIN}.env[0].valueFrom.resourceFieldRef.divisor", "Invalid")},
    ),
    "key of a config map": (
        env(valueFrom={"configMapKeyRef": {"name": "A_", "key": "a b"}}),
        {
            (f"{MAIN}.env[0].valueFrom.configMapKeyRef.name", "Invalid"),
            (f"{MAIN}.env[0].valueFrom.configMapKeyRef.key", "Invalid"),
        },
    ),
    "file of a volume that is not there": (
        env(valueFrom={"fileKeyRef": {"volumeName": "v", "path": "../a", "key": "K"}}),
        {
            (f"{MAIN}.env[0].valueFrom.fileKeyRef.path", "Invalid"),
            (f"{MAIN}.env[0].valueFrom.fileKeyRef.volumeName", "NotFound"),
        },
    ),
    "all of nothing": (
        container(envFrom=[{"prefix": "="}]),
        {(f"{MAIN}.envFrom[0].prefix", "Invalid"), (f"{MAIN}.envFrom", "Invalid")},
    ),
    "all of a secret without name": (
        container(envFrom=[{"secretRef": {}}]),
        {(f"{MAIN}.envFrom[0].secretRef.name", "Required")},
    ),
    # mounts
    "path below": (
        mounted({"name": "v", "mountPath": "/a", "subPath": "/x"}),
        {(f"{MAIN}.volumeMounts.subPath", "Invalid")},
    ),
    "both paths below": (
        mounted({"name": "v", "mountPath": "/a", "subPath": "x", "subPathExpr": "$(A)/.."}),
        {
            (f"{MAIN}.volumeMounts[0].subPathExpr", "Invalid"),
            (f"{MAIN}.volumeMounts.subPathExpr", "Invalid"),
        },
    ),
    "propagation without privilege": (
        mounted({"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"}),
        {(f"{MAIN}.volumeMounts.mountPropagation", "Forbidden")},
    ),
    "propagation with privilege": (
        mounted(
            {"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"},
            securityContext={"privileged": True},
        ),
        set(),
    ),
    "unknown propagation": (
        mounted({"name": "v", "mountPath": "/a", "mountPropagation": "Both"}),
        {(f"{MAIN}.volumeMounts.mountPropagation", "NotSupported")},
    ),
    "recursively read-only but writable": (
        mounted({"name": "v", "mountPath": "/a", "recursiveReadOnly": "Enabled"}),
        {(f"{MAIN}.volumeMounts.recursiveReadOnly", "Forbidden")},
    ),
    "block device": (mounted(devices=[{"name": "p", "devicePath": "/dev/x"}]), set()),
    "block device of a folder": (
        mounted(devices=[{"name": "v", "devicePath": "/../x"}]),
        {
            (f"{MAIN}.volumeDevices[0].name", "Invalid"),
            (f"{MAIN}.volumeDevices[0].devicePath", "Invalid"),
        },
    ),
    "mounted and a device": (
        mounted({"name": "p", "mountPath": "/a"}, devices=[{"name": "p", "devicePath": "/a"}]),
        {
            (f"{MAIN}.volumeMounts[0].name", "Invalid"),
            (f"{MAIN}.volumeMounts[0].mountPath", "Invalid"),
            (f"{MAIN}.volumeDevices[0].name", "Invalid"),
            (f"{MAIN}.volumeDevices[0].devicePath", "Invalid"),
        },
    ),
    "mount of a volume that is wrong itself": (
        {
            **container(volumeMounts=[{"name": "v", "mountPath": "/a"}]),
            **volume(secret={}),
        },
        {
            ("spec.volumes[0].secret.secretName", "Required"),
            (f"{MAIN}.volumeMounts[0].name", "NotFound"),
        },
    ),
    # volumes
    "negative size": (
        volume(emptyDir={"sizeLimit": "-1"}),
        {("spec.volumes[0].emptyDir.sizeLimit", "Forbidden")},
    ),
    "path on the host": (
        volume(hostPath={"path": "/a/.."}),
        {("spec.volumes[0].hostPath.path", "Invalid")},
    ),
    "items": (
        volume(secret={"secretName": "s", "items": [{"path": "..a", "mode": 0o1000}]}),
        {
            ("spec.volumes[0].secret.items[0].key", "Required"),
            ("spec.volumes[0].secret.items[0].path", "Invalid"),
            ("spec.volumes[0].secret.items[0].mode", "Invalid"),
        },
    ),
    "files about the pod": (
        volume(downwardAPI={"items": [{"path": "a"}]}),
        {("spec.volumes[0].downwardAPI", "Required")},
    ),
    "token for a moment": (
        {
            "serviceAccountName": "s",
            **volume(
                projected={
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 1}}]
                }
            ),
        },
        {("spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds", "Invalid")},
    ),
    "two files in one place": (
        volume(
            projected={
                "sources": [
                    {"secret": {"name": "s", "items": [{"key": "a", "path": "x"}]}},
                    {"configMap": {"name": "c", "items": [{"key": "a", "path": "x"}]}},
                ]
            }
        ),
        {("spec.volumes[0].projected", "Invalid")},
    ),
    "driver of a volume": (
        volume(csi={"driver": "A_"}),
        {("spec.volumes[0].csi.driver", "Invalid")},
    ),
    "image": (volume(image={}), {("spec.volumes[0].image.reference", "Required")}),
    "two sources, one misspelt by upstream": (
        volume(emptyDir={}, downwardAPI={}),
        {("spec.volumes[0].downwarAPI", "Forbidden")},
    ),
    # probes and hooks
    "scheme and headers": (
        container(
            livenessProbe={
                "httpGet": {"port": "p--q", "scheme": "ftp", "httpHeaders": [{"name": "a b"}]}
            }
        ),
        {
            (f"{MAIN}.livenessProbe.httpGet.port", "Invalid"),
            (f"{MAIN}.livenessProbe.httpGet.scheme", "NotSupported"),
            (f"{MAIN}.livenessProbe.httpGet.httpHeaders", "Invalid"),
        },
    ),
    "grace of a readiness probe": (
        container(readinessProbe={"exec": {"command": ["a"]}, "terminationGracePeriodSeconds": 0}),
        {(f"{MAIN}.readinessProbe.terminationGracePeriodSeconds", "Invalid")},
    ),
    "a longer sleep than there is time": (
        container(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
        {(f"{MAIN}.lifecycle.preStop.sleep", "Invalid")},
    ),
    "a signal for no system": (
        container(lifecycle={"stopSignal": "SIGUSR1"}),
        {(f"{MAIN}.lifecycle.stopSignal", "Forbidden")},
    ),
    "a signal that there is not": (
        container(lifecycle={"stopSignal": "SIGRTMIN+16"}) | {"os": {"name": "linux"}},
        {(f"{MAIN}.lifecycle.stopSignal", "NotSupported")},
    ),
    "a signal of another system": (
        container(lifecycle={"stopSignal": "SIGHUP"}) | {"os": {"name": "windows"}},
        {(f"{MAIN}.lifecycle.stopSignal", "NotSupported")},
    ),
    "a signal": (
        container(lifecycle={"stopSignal": "SIGRTMIN+15"}) | {"os": {"name": "linux"}},
        set(),
    ),
    # security
    "ids": (
        {"securityContext": {"runAsUser": -1, "fsGroup": 2**31, "supplementalGroups": [-1]}},
        {
            ("spec.securityContext.runAsUser", "Invalid"),
            ("spec.securityContext.fsGroup", "Invalid"),
            ("spec.securityContext.supplementalGroups[0]", "Invalid"),
        },
    ),
    "kernel settings": (
        {"securityContext": {"sysctls": [{"name": "A", "value": "1"}, {"name": ""}]}},
        {
            ("spec.securityContext.sysctls[0].name", "Invalid"),
            ("spec.securityContext.sysctls[1].name", "Required"),
        },
    ),
    "choices": (
        {"securityContext": {"fsGroupChangePolicy": "Never", "seccompProfile": {"type": "x"}}},
        {
            ("spec.securityContext.fsGroupChangePolicy", "NotSupported"),
            ("spec.securityContext.seccompProfile.type", "NotSupported"),
        },
    ),
    "profile on the host": (
        container(securityContext={"seccompProfile": {"type": "Localhost"}}),
        {(f"{MAIN}.securityContext.seccompProfile.localhostProfile", "Required")},
    ),
    "privileged without escalation": (
        container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
        {(f"{MAIN}.securityContext", "Invalid")},
    ),
    "users of its own on the host's network": (
        {"hostUsers": False, "hostNetwork": True, "hostPID": True},
        {("spec.hostNetwork", "Forbidden"), ("spec.HostPID", "Forbidden")},
    ),
    # names and network
    "no name server": ({"dnsPolicy": "None"}, {("spec.dnsConfig", "Required")}),
    "name servers": (
        {"dnsConfig": {"nameservers": ["1.1.1.1", "x", "1.1.1.01", "::ffff:1.2.3.4"]}},
        {
            ("spec.dnsConfig.nameservers", "Invalid"),
            ("spec.dnsConfig.nameservers[1]", "Invalid"),
            ("spec.dnsConfig.nameservers[2]", "Invalid"),
            ("spec.dnsConfig.nameservers[3]", "Invalid"),
        },
    ),
    "searches": (
        {"dnsConfig": {"searches": [".", "_a.b.", "A"], "options": [{}]}},
        {("spec.dnsConfig.searches[2]", "Invalid"), ("spec.dnsConfig.options[0]", "Required")},
    ),
    "aliases": (
        {"hostAliases": [{"ip": "x", "hostnames": ["A_"]}]},
        {("spec.hostAliases[0].ip", "Invalid"), ("spec.hostAliases[0].hostnames[0]", "Invalid")},
    ),
    "port of the host": (
        {"hostNetwork": True, **container(ports=[{"containerPort": 80, "hostPort": 81}])},
        {(f"{MAIN}.ports[0].hostPort", "Invalid")},
    ),
    "host name": (
        {"hostnameOverride": "A" * 65, "setHostnameAsFQDN": True},
        {
            ("spec.hostnameOverride", "Forbidden"),
            ("spec.hostnameOverride", "TooLong"),
            ("spec.hostnameOverride", "Invalid"),
        },
    ),
    "readiness gate": (
        {"readinessGates": [{"conditionType": "a b"}]},
        {("spec.readinessGates[0].conditionType", "Invalid")},
    ),
    "operating system": ({"os": {"name": "plan9"}}, {("spec.os", "NotSupported")}),
    "pull secret without name": ({"imagePullSecrets": [{}]}, set()),
    "padded image": (container(image=" i"), {(f"{MAIN}.image", "Invalid")}),
    # restarts and resizing
    "restart policy of a container": (
        container(restartPolicy="Sometimes"),
        {(f"{MAIN}.restartPolicy", "NotSupported")},
    ),
    "rules without policy": (
        container(restartPolicyRules=[{"action": "Stop"}]),
        {
            (f"{MAIN}.restartPolicy", "Required"),
            (f"{MAIN}.restartPolicyRules[0].action", "NotSupported"),
            (f"{MAIN}.restartPolicyRules[0].exitCodes", "Required"),
        },
    ),
    "resize policies": (
        container(
            resizePolicy=[
                {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                {"resourceName": "cpu", "restartPolicy": "x"},
                {"resourceName": "gpu", "restartPolicy": "NotRequired"},
            ]
        ),
        {(f"{MAIN}.resizePolicy[1]", "Duplicate"), (f"{MAIN}.resizePolicy", "NotSupported")},
    ),
    "host ports of init containers count each as the first": (
        {
            "initContainers": [
                {"name": "a", "image": "i"},
                {
                    "name": "b",
                    "image": "i",
                    "ports": [
                        {"containerPort": 1, "hostPort": 1},
                        {"containerPort": 2, "hostPort": 1},
                    ],
                },
            ]
        },
        {("spec.initContainers[0].ports[1].hostPort", "Duplicate")},
    ),
    # scheduling
    "comparing toleration": (
        {"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]},
        {("spec.tolerations[0].operator", "NotSupported")},
    ),
    "any text is a topology": (spread(topologyKey="a b"), set()),
    "inclusion": (
        spread(nodeTaintsPolicy=""),
        {("spec.topologySpreadConstraints[0].nodeTaintsPolicy", "NotSupported")},
    ),
    "keys without a selector": (
        spread(matchLabelKeys=["a"]),
        {("spec.topologySpreadConstraints[0].matchLabelKeys", "Forbidden")},
    ),
    "keys on both sides": (
        together(labelSelector={}, matchLabelKeys=["a"], mismatchLabelKeys=["a", "b c"]),
        {(f"{TERM}.matchLabelKeys[0]", "Invalid"), (f"{TERM}.mismatchLabelKeys[1]", "Invalid")},
    ),
    "values of a preferred node": (
        {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 1,
                            "preference": {
                                "matchExpressions": [
                                    {"key": "a", "operator": "In", "values": ["b c"]}
                                ]
                            },
                        }
                    ]
                }
            }
        },
        set(),
    ),
    # amounts
    "pages of no size": (
        container(resources={"limits": {"hugepages-x": "1", "cpu": "1"}}),
        {
            (f"{MAIN}.resources.limits[hugepages-x]", "Invalid"),
            (f"{MAIN}.resources.requests[hugepages-x]", "Invalid"),
        },
    ),
    "pod as a whole": (
        {
            "resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}},
            **container(resources={"requests": {"cpu": "2"}}),
        },
        {
            ("spec.resources.requests[cpu]", "Invalid"),
            ("spec.resources.requests[example.com/gpu]", "NotSupported"),
            ("spec.resources.limits", "Required"),
        },
    ),
}


@pytest.mark.parametrize(("spec", "causes"), CASES.values(), ids=CASES.keys())
def test_a_part_of_a_pod_is_refused_at_its_field(spec: Object, causes: Causes) -> None:
    """Each broken rule is reported at the field, and with the reason, that the real server gives."""
    obj = created(PODS, pod(**copy.deepcopy(spec)), make_context())
    assert refusals(PODS.strategy.validate(obj, make_context())) == causes


def test_the_cost_of_deleting_a_pod_is_a_number() -> None:
    """The annotation by which controllers choose what to delete is a number of 32 bits without ornaments."""
    for text, good in (("-5", True), ("0", True), ("+5", False), ("08", False), ("", False)):
        obj = pod()
        obj["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": text}
        found = refusals(PODS.strategy.validate(created(PODS, obj, make_context()), make_context()))
        path = "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"
        assert found == (set() if good else {(path, "Invalid")}), text


def test_keys_of_labels_are_written_into_selectors() -> None:
    """A pod's selectors get the values its own labels have when it is made."""
    obj = pod(
        **spread(labelSelector={}, matchLabelKeys=["a", "absent"]),
        **together(labelSelector={"matchLabels": {"x": "y"}}, mismatchLabelKeys=["a"]),
    )
    obj["metadata"]["labels"] = {"a": "1"}
    spec = created(PODS, obj, make_context())["spec"]
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]
    }
    term = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert term["labelSelector"]["matchExpressions"] == [
        {"key": "a", "operator": "NotIn", "values": ["1"]}
    ]


def test_requests_of_a_pod_follow_from_its_containers_and_limits() -> None:
    """What a pod limits as a whole it also requests: as much as its containers do, or else as its limit says."""
    obj = pod(resources={"limits": {"cpu": "2", "memory": "1Gi"}})
    obj["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}
    obj["spec"]["initContainers"] = [
        {"name": "i", "image": "i", "resources": {"requests": {"cpu": "700m"}}}
    ]
    resources = created(PODS, obj, make_context())["spec"]["resources"]
    assert resources["requests"] == {"cpu": "700m", "memory": "1Gi"}


@pytest.mark.parametrize("place", ["annotations", "labels"])
def test_what_pods_say_about_prices_has_few_values(place: str) -> None:
    """Anything else is refused when it is new: what was let in earlier can still be changed otherwise."""
    for name, good, bad in (("cost", "low", "lowest"), ("spot", "false", "no")):
        key = f"drayman.dev/{name}"
        for text in (good, bad):
            obj = pod()
            obj["metadata"][place] = {key: text}
            made = created(PODS, obj, make_context())
            found = refusals(PODS.strategy.validate(made, make_context()))
            refused = {(f"metadata.{place}[{key}]", "NotSupported")}
            assert found == (set() if text == good else refused)
            before = copy.deepcopy(made)
            assert refusals(PODS.strategy.validate_update(made, before, make_context())) == set()
            before["metadata"][place] = {}
            found = refusals(PODS.strategy.validate_update(made, before, make_context()))
            assert found == (set() if text == good else refused)
