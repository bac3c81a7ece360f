"""Admission of pods, groups of pods and nodes."""

from __future__ import annotations

import pytest

from apiserver.kinds.circumstances import Objects, created, make_context, pod, resource_of
from drayman.apiserver.kinds.admission import DefaultTolerations, Priority
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import Admitted

PODS = resource_of("", "Pod")
CLASSES = "priorityclasses.scheduling.k8s.io"


def priority_class(name: str, value: int, **more: object) -> Object:
    return {"metadata": {"name": name}, "value": value, **more}


def admit_pod(objects: Objects, **spec: object) -> Object:
    spec_of: Object = created(PODS, pod(**spec), make_context(objects))["spec"]
    return spec_of


@pytest.mark.parametrize(
    ("classes", "spec", "priority", "policy"),
    [
        pytest.param([], {}, 0, "PreemptLowerPriority", id="no class"),
        pytest.param(
            [priority_class("high", 77, preemptionPolicy="Never")],
            {"priorityClassName": "high"},
            77,
            "Never",
            id="named",
        ),
        pytest.param(
            [
                priority_class("a", 9, globalDefault=True),
                priority_class("b", 5, globalDefault=True),
            ],
            {},
            5,
            "PreemptLowerPriority",
            id="the lower of two defaults",
        ),
        pytest.param(
            [],
            {"priorityClassName": "system-node-critical"},
            2_000_001_000,
            "PreemptLowerPriority",
            id="known to the system",
        ),
    ],
)
def test_priority_follows_from_the_class(
    classes: list[Object], spec: Object, priority: int, policy: str
) -> None:
    """A pod gets the number and the preemption policy of its class."""
    objects = Objects()
    for item in classes:
        objects.add(CLASSES, item)
    found = admit_pod(objects, **spec)
    assert (found["priority"], found["preemptionPolicy"]) == (priority, policy)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param(
            {"priorityClassName": "nope"}, "no PriorityClass with name nope", id="unknown"
        ),
        pytest.param({"priority": 5}, "integer value of priority (5)", id="own number"),
        pytest.param({"preemptionPolicy": "Never"}, "PreemptionPolicy (Never)", id="own policy"),
        pytest.param({"runtimeClassName": "nope"}, 'RuntimeClass "nope" not found', id="runtime"),
        pytest.param({"overhead": {"cpu": "1"}}, "Pod Overhead set without", id="overhead"),
    ],
)
def test_pods_cannot_choose_what_follows_from_elsewhere(spec: Object, words: str) -> None:
    """What the server works out itself, a pod may not claim; what it names must exist."""
    with pytest.raises(StatusError) as refusal:
        admit_pod(Objects(), **spec)
    assert (refusal.value.code, refusal.value.reason) == (403, "Forbidden")
    assert words in refusal.value.message


def test_a_runtime_class_adds_its_cost_and_place() -> None:
    """Overhead, node selector and tolerations of the class are added to the pod's."""
    objects = Objects()
    toleration = {"key": "vm", "operator": "Exists"}
    objects.add(
        "runtimeclasses.node.k8s.io",
        {
            "metadata": {"name": "vm"},
            "overhead": {"podFixed": {"cpu": "1"}},
            "scheduling": {"nodeSelector": {"r": "c"}, "tolerations": [toleration]},
        },
    )
    spec = admit_pod(objects, runtimeClassName="vm", nodeSelector={"a": "b"})
    assert spec["overhead"] == {"cpu": "1"}
    assert spec["nodeSelector"] == {"a": "b", "r": "c"}
    assert toleration in spec["tolerations"]


@pytest.mark.parametrize(
    ("own", "added"),
    [
        pytest.param([], 2, id="none"),
        pytest.param([{"operator": "Exists"}], 0, id="everything"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}], 1, id="one of them"
        ),
        pytest.param([{"operator": "Exists", "effect": "NoSchedule"}], 2, id="another effect"),
    ],
)
def test_pods_put_up_with_nodes_that_are_away_for_a_while(own: list[Object], added: int) -> None:
    """A toleration is added for each reason a node is away that the pod does not mention itself."""
    spec = admit_pod(Objects(), tolerations=own)
    assert len(spec["tolerations"]) == len(own) + added


def test_replacing_a_pod_adds_the_tolerations_again() -> None:
    """A client that sends a pod without the added tolerations does not take them away."""
    new = pod()
    old = created(PODS, pod(), make_context())
    write = Admitted("UPDATE", PODS, "", "ns", "pod", new, old, make_context())
    DefaultTolerations().admit(write)
    assert new["spec"]["tolerations"] == old["spec"]["tolerations"]


def test_new_nodes_take_no_pods_yet() -> None:
    """A node starts with a taint, once, beside those it brings."""
    nodes = resource_of("", "Node")
    own = {"key": "k", "effect": "NoSchedule"}
    node = created(nodes, {"metadata": {"name": "n"}, "spec": {"taints": [own]}}, make_context())
    assert [taint["key"] for taint in node["spec"]["taints"]] == [
        "k",
        "node.kubernetes.io/not-ready",
    ]


def test_groups_of_pods_have_a_priority() -> None:
    """A group gets the priority of its class, and a finalizer that keeps it while it has pods."""
    groups = resource_of("scheduling.k8s.io", "PodGroup")
    objects = Objects()
    objects.add(CLASSES, priority_class("high", 7))
    group = created(
        groups,
        {
            "metadata": {"name": "g"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "priorityClassName": "high"},
        },
        make_context(objects),
    )
    assert group["spec"]["priority"] == 7
    assert group["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]


SYSTEM = "system-cluster-critical"


def quota(name: str, operator: str, values: list[str], **hard: str) -> Object:
    term = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    return {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"hard": hard, "scopeSelector": {"matchExpressions": [term]}},
    }


UNCOVERED = (
    "insufficient quota to match these scopes:"
    " [{PriorityClass In [system-cluster-critical system-node-critical]}]"
)


@pytest.mark.parametrize(
    ("quotas", "pods", "namespace", "want"),
    [
        pytest.param([], 0, "kube-system", "", id="of the system"),
        pytest.param([], 0, "ns", UNCOVERED, id="of a tenant"),
        pytest.param([quota("q", "In", [SYSTEM], pods="2")], 1, "ns", "", id="within a quota"),
        pytest.param(
            [quota("q", "In", [SYSTEM], pods="2")],
            2,
            "ns",
            "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2",
            id="beyond a quota",
        ),
        pytest.param([quota("q", "Exists", [], pods="1")], 0, "ns", "", id="any class"),
        pytest.param(
            [quota("q", "In", [SYSTEM], cpu="2")], 0, "ns", UNCOVERED, id="a quota of CPU"
        ),
        pytest.param(
            [quota("q", "In", ["other"], pods="9"), quota("r", "NotIn", [SYSTEM], pods="9")],
            0,
            "ns",
            UNCOVERED,
            id="quotas of other classes",
        ),
    ],
)
def test_classes_of_the_system(quotas: list[Object], pods: int, namespace: str, want: str) -> None:
    """Outside kube-system a pod has a class of the system only within a quota of pods for it."""
    objects = Objects()
    for each in quotas:
        objects.add("resourcequotas", each)
    for number in range(pods):
        made = pod(priorityClassName=SYSTEM)
        objects.add("pods", {**made, "metadata": {"name": str(number), "namespace": "ns"}})
    ended = {**pod(priorityClassName=SYSTEM), "status": {"phase": "Failed"}}
    objects.add("pods", {**ended, "metadata": {"name": "ended", "namespace": "ns"}})
    new, context = pod(priorityClassName=SYSTEM), make_context(objects)
    write = Admitted("CREATE", PODS, "", namespace, "pod", new, None, context)
    if not want:
        Priority().validate(write)
        return
    with pytest.raises(StatusError) as raised:
        Priority().validate(write)
    assert str(raised.value) == f'pods "pod" is forbidden: {want}'


@pytest.mark.parametrize(
    ("group", "kind", "spec"),
    [
        ("scheduling.k8s.io", "PodGroup", {"priorityClassName": SYSTEM}),
        ("", "Pod", {"priorityClassName": "mine"}),
    ],
)
def test_groups_of_pods_have_no_class_of_the_system(group: str, kind: str, spec: Object) -> None:
    """A PodGroup is refused like a pod; an update that keeps the class is not, nor is a class of one's own."""
    new, resource = {"metadata": {"name": "g"}, "spec": spec}, resource_of(group, kind)
    for old in (None, new):
        write = Admitted("CREATE", resource, "", "ns", "g", new, old, make_context())
        if old is None and kind == "PodGroup":
            with pytest.raises(StatusError, match="insufficient quota"):
                Priority().validate(write)
        else:
            Priority().validate(write)
