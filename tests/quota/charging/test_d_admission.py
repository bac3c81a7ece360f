"""Workloads with devices on their way through queues: the cases of the specification that need admission, with their names.

Decided as Kueue decides them, by the engine that replays recorded scenarios.
"""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert
from drayman.api.quantity import Quantity
from drayman.simulate.quota_replay.driving import replay
from drayman.simulate.quota_replay.scenario import Scenario
from oracle.build import device, device_class, exactly, partitioned, piece
from quota.charging.pricing_cases import GI, attribute_is, counter, extended, maps

JsonObject = dict[str, Any]
NAME = "example.com/gpu"


def kind(name: str, value: JsonObject) -> JsonObject:
    return {"kind": name, **value}


def queue(name: str, quota: dict[str, str], cohort: str = "") -> list[JsonObject]:
    """A ClusterQueue with a flavor `f`, and a LocalQueue of the same name."""
    resources = [{"name": each, "nominalQuota": amount} for each, amount in quota.items()]
    groups = [{"coveredResources": list(quota), "flavors": [{"name": "f", "resources": resources}]}]
    spec = {"resourceGroups": groups, "namespaceSelector": {}, "cohortName": cohort}
    return [
        kind("ClusterQueue", {"metadata": {"name": name}, "spec": spec}),
        kind(
            "LocalQueue",
            {"metadata": {"name": name, "namespace": "default"}, "spec": {"clusterQueue": name}},
        ),
    ]


FLAVOR = kind("ResourceFlavor", {"metadata": {"name": "f"}, "spec": {}})


def template(name: str, *requests: JsonObject) -> JsonObject:
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    metadata = {"name": name, "namespace": "default"}
    return kind("ResourceClaimTemplate", {"metadata": metadata, "spec": spec})


class Submitted:
    """Makes workloads that are younger one by one."""

    def __init__(self) -> None:
        self._made = 0

    def workload(self, name: str, pod: JsonObject, *, count: int = 1, to: str = "q") -> JsonObject:
        self._made += 1
        created = f"2026-01-01T00:00:{self._made:02}Z"
        metadata = {"name": name, "namespace": "default", "creationTimestamp": created}
        pod_set = {"name": "main", "count": count, "template": {"spec": pod}}
        spec = {"queueName": to, "priority": 0, "active": True, "podSets": [pod_set]}
        return kind("Workload", {"metadata": metadata, "spec": spec})


def claiming(template_name: str) -> JsonObject:
    return {
        "containers": [{"name": "c"}],
        "resourceClaims": [{"name": "d", "resourceClaimTemplateName": template_name}],
    }


def asking(amount: str) -> JsonObject:
    return {"containers": [{"name": "c", "resources": {"requests": {NAME: amount}}}]}


def settled(mappings: list[JsonObject], *steps: JsonObject) -> list[JsonObject]:
    """The checkpoints of a scenario: one after each step."""
    every = [each for step in steps for each in (step, {"settle": "then"})]
    config = {"resources": {"deviceClassMappings": mappings}}
    value = {"name": "case", "config": config, "gates": {}, "steps": every}
    return replay(convert(Scenario, value))


def admitted(checkpoint: JsonObject) -> dict[str, dict[str, str]]:
    """What each workload that holds quota uses."""
    return {
        key.removeprefix("default/"): pod_set["usage"]
        for key, value in checkpoint["workloads"].items()
        for pod_set in value.get("podSets", ())
    }


def reason(checkpoint: JsonObject, name: str) -> str:
    """Why a workload waits, as its condition says it."""
    found = checkpoint["workloads"][f"default/{name}"]["conditions"]["QuotaReserved"]
    assert found[0] == "False"
    return str(found[1])


GPUS = [maps("foo", "gpu")]
GPU_CLASS = kind("DeviceClass", device_class("gpu"))


def test_d2_a_class_without_a_mapping_gets_no_quota() -> None:
    """It is refused, whatever quota there is."""
    made = Submitted()
    objects = [FLAVOR, *queue("q", {"foo": "9"}), GPU_CLASS, template("t", exactly(count=2))]
    (then,) = settled([], {"create": [*objects, made.workload("a", claiming("t"))]})
    assert admitted(then) == {}
    assert reason(then, "a") == "Misconfigured"


def test_d23_workloads_are_admitted_up_to_the_quota() -> None:
    """Of ten devices, two workloads of four are given theirs; one of twelve waits."""
    made = Submitted()
    objects = [
        *[FLAVOR, *queue("q", {"foo": "10"}), GPU_CLASS],
        *[template("four", exactly(count=4)), template("twelve", exactly(count=12))],
        *[made.workload(name, claiming("four")) for name in ("a", "b")],
        made.workload("c", claiming("twelve")),
    ]
    (then,) = settled(GPUS, {"create": objects})
    assert admitted(then) == {"a": {"foo": "4"}, "b": {"foo": "4"}}
    assert reason(then, "c") == "ExceedsMaxQuota"


def test_d24_every_pod_is_charged() -> None:
    """Three pods with a claim of one device each use three."""
    made = Submitted()
    objects = [FLAVOR, *queue("q", {"foo": "10"}), GPU_CLASS, template("t", exactly())]
    (then,) = settled(GPUS, {"create": [*objects, made.workload("a", claiming("t"), count=3)]})
    assert admitted(then) == {"a": {"foo": "3"}}


def test_d20_admin_access_uses_no_quota() -> None:
    """A workload that only looks is admitted where there is no quota at all."""
    made = Submitted()
    looking = template("t", exactly(admin=True))
    objects = [FLAVOR, *queue("q", {"foo": "0"}), GPU_CLASS, looking]
    (then,) = settled(GPUS, {"create": [*objects, made.workload("a", claiming("t"))]})
    assert then["workloads"]["default/a"]["status"] == "admitted"


def test_d27_a_template_that_comes_later_is_noticed() -> None:
    """The workload waits for it, and is admitted when it is there."""
    made = Submitted()
    objects = [FLAVOR, *queue("q", {"foo": "1"}), GPU_CLASS, made.workload("a", claiming("t"))]
    before, after = settled(GPUS, {"create": objects}, {"create": [template("t", exactly())]})
    assert reason(before, "a") == "Misconfigured"
    assert admitted(after) == {"a": {"foo": "1"}}


def test_d42_to_d44_classes_that_come_and_go_are_noticed() -> None:
    """A name becomes one for devices, charged under their name, and ordinary again."""
    made = Submitted()
    objects = [FLAVOR, *queue("q", {"foo": "1"}), made.workload("a", asking("1"))]
    behind = kind("DeviceClass", extended("gpu", NAME))
    before, after, gone = settled(
        GPUS,
        {"create": objects},
        {"create": [behind, made.workload("b", asking("1"))]},
        {"delete": {"kind": "DeviceClass", "name": "gpu"}},
    )
    assert reason(before, "a") == "NoMatchingFlavor"
    assert admitted(after) == {"a": {"foo": "1"}}
    assert reason(after, "b") == "WaitingForQuota"
    assert reason(gone, "b") == "NoMatchingFlavor"


MEMORY = [maps("gpu.memory", "mig", sources=[counter()])]
PARTS = partitioned(
    [
        device(f"d{n}", attrs={"profile": "small"}, spends={"c": {"memory": "10Gi"}})
        for n in range(8)
    ],
    {"c": {"memory": "80Gi"}},
)
MIG = [
    kind("DeviceClass", device_class("mig")),
    template("t", exactly(cls="mig", select=[attribute_is("profile", "small")])),
]
SLICES = [kind("ResourceSlice", each) for each in PARTS]


def test_d53_a_slice_that_comes_later_is_noticed() -> None:
    """Nobody has to do anything but publish it."""
    made = Submitted()
    objects = [FLAVOR, *queue("q", {"gpu.memory": "30Gi"}), *MIG, made.workload("a", claiming("t"))]
    before, after = settled(MEMORY, {"create": objects}, {"create": SLICES})
    assert reason(before, "a") == "Misconfigured"
    assert admitted(after) == {"a": {"gpu.memory": f"{10 * GI}"}}


def test_d76_and_d77_memory_is_borrowed_in_a_cohort() -> None:
    """Five workloads of 10Gi use 50Gi of two queues with 30Gi each; a sixth fits, and a seventh waits."""
    made = Submitted()
    queues = [
        *queue("prod", {"gpu.memory": "30Gi"}, "co"),
        *queue("dev", {"gpu.memory": "30Gi"}, "co"),
    ]
    five = [made.workload(f"w{n}", claiming("t"), to="prod") for n in range(5)]
    more = [made.workload(f"x{n}", claiming("t"), to="dev") for n in range(2)]
    before, after = settled(
        MEMORY, {"create": [FLAVOR, *queues, *MIG, *SLICES, *five]}, {"create": more}
    )
    assert len(admitted(before)) == 5
    reserved = before["clusterQueues"]["prod"]["reservation"]["f"]["gpu.memory"]
    assert [Quantity.parse(each).amount for each in reserved] == [50 * GI, 20 * GI]
    assert len(admitted(after)) == 6
    assert reason(after, "x1") == "WaitingForQuota"


def test_d78_devices_are_borrowed_in_a_cohort() -> None:
    """Seven of five and five: two are borrowed."""
    made = Submitted()
    queues = [*queue("prod", {"foo": "5"}, "co"), *queue("dev", {"foo": "5"}, "co")]
    wanted = [template("t", exactly(count=7)), made.workload("a", claiming("t"), to="prod")]
    (then,) = settled(GPUS, {"create": [FLAVOR, *queues, GPU_CLASS, *wanted]})
    assert admitted(then) == {"a": {"foo": "7"}}
    assert then["clusterQueues"]["prod"]["reservation"]["f"]["foo"] == ["7", "2"]


def test_d81_a_workload_without_a_price_says_so_in_its_conditions() -> None:
    """No quota is reserved, and the reason is that of Kueue for everything that is wrong with a workload."""
    made = Submitted()
    short = template("t", exactly(count=3, select=["true"]))
    slices = kind("ResourceSlice", piece(["d0", "d1"]))
    objects = [FLAVOR, *queue("q", {"foo": "9"}), GPU_CLASS, short, slices]
    (then,) = settled(GPUS, {"create": [*objects, made.workload("a", claiming("t"))]})
    conditions = then["workloads"]["default/a"]["conditions"]
    assert conditions["QuotaReserved"] == ["False", "Misconfigured"]
    assert then["clusterQueues"]["q"]["reserving"] == 0
