"""What manifests cost in quota: which workloads are found in files, and what the answer says about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from drayman.placement.world import Objects, World
from drayman.questions.errors import QuestionError
from drayman.questions.kueue_configuration import configuration_in, gates_in, mappings_in
from drayman.questions.quota_prices import Conditions, PriceAnswer, price
from drayman.quota.charging.rules import KUEUE, Gates, Rules

JsonObject = dict[str, Any]
CONFIGURATION = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "resources": {
        "deviceClassMappings": [
            {"name": "example.com/gpus", "deviceClassNames": ["gpu.example.com"]}
        ]
    },
}
POD_SPEC = {
    "restartPolicy": "Never",
    "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "two"}],
    "containers": [
        {"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    ],
}
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.example.com"},
}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "two"},
    "spec": {
        "spec": {
            "devices": {
                "requests": [
                    {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}
                ]
            }
        }
    },
}


def named(api_version: str, kind: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}, "spec": spec}


def labelled(spec: JsonObject) -> JsonObject:
    """A template of pods for kinds that find them by label."""
    long_lived = {**POD_SPEC, "restartPolicy": "Always"}
    return {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": long_lived},
        **spec,
    }


async def ask(
    *documents: JsonObject,
    configuration: JsonObject = CONFIGURATION,
    rules: Rules | None = None,
    by_flavor: bool = False,
    flavors: Mapping[str, Mapping[str, str]] | None = None,
) -> PriceAnswer:
    data = yaml.safe_dump_all(documents).encode()
    mappings = mappings_in("kueue.yaml", configuration)
    conditions = Conditions(mappings, rules or Rules(), Gates(), flavors or {}, by_flavor)
    return await price(World(Objects(), 0.0), [("f.yaml", data)], "default", conditions)


KINDS: dict[str, tuple[JsonObject, int]] = {
    "pod": (named("v1", "Pod", POD_SPEC), 1),
    "job": (
        named(
            "batch/v1", "Job", {"parallelism": 3, "completions": 9, "template": {"spec": POD_SPEC}}
        ),
        3,
    ),
    "a job with few completions": (
        named(
            "batch/v1", "Job", {"parallelism": 5, "completions": 2, "template": {"spec": POD_SPEC}}
        ),
        2,
    ),
    "a job that is suspended": (
        named("batch/v1", "Job", {"suspend": True, "template": {"spec": POD_SPEC}}),
        1,
    ),
    "deployment": (named("apps/v1", "Deployment", labelled({"replicas": 4})), 4),
    "statefulset": (
        named("apps/v1", "StatefulSet", labelled({"replicas": 2, "serviceName": "s"})),
        2,
    ),
    "workload": (
        named(
            "kueue.x-k8s.io/v1beta2",
            "Workload",
            {"podSets": [{"name": "main", "count": 6, "template": {"spec": POD_SPEC}}]},
        ),
        6,
    ),
}


@pytest.mark.parametrize("name", KINDS)
async def test_kinds_that_are_queued(name: str) -> None:
    """Each costs what its pods ask for, devices before the rest, whether it is suspended or not."""
    document, count = KINDS[name]
    answer = await ask(document, TEMPLATE, CLASS)
    (workload,) = answer.workloads
    (pods,) = workload.pod_sets
    assert (workload.title, pods.pods) == (f"{document['kind'].lower()}/it", count)
    assert [(r.name, r.each, r.total) for r in pods.resources] == [
        ("example.com/gpus", "2", str(2 * count)),
        ("cpu", "500m", str(count // 2) if count % 2 == 0 else f"{count * 500}m"),
        ("memory", "1Gi", f"{count}Gi"),
    ]
    assert answer.is_complete


async def test_job_sets_have_a_price_for_each_of_their_jobs() -> None:
    """Kinds of others that a Workload is made of are found by their table."""
    jobs = [
        {
            "name": name,
            "replicas": replicas,
            "template": {"spec": {"parallelism": 2, "template": {"spec": POD_SPEC}}},
        }
        for name, replicas in (("leader", 1), ("workers", 3))
    ]
    document = named("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})
    answer = await ask(document, TEMPLATE, CLASS)
    (workload,) = answer.workloads
    assert [(each.name, each.pods) for each in workload.pod_sets] == [("leader", 2), ("workers", 6)]
    assert answer.ignored == ()


async def test_what_has_no_price_says_why() -> None:
    """The reason, Kueue's reason, the field, and whether it may pass."""
    answer = await ask(KINDS["pod"][0], CLASS)
    (workload,) = answer.workloads
    assert not answer.is_complete
    assert workload.no_price is not None
    assert (workload.no_price.reason, workload.no_price.condition) == (
        "TemplateMissing",
        "Misconfigured",
    )
    assert workload.no_price.may_pass
    assert workload.no_price.field.endswith("resourceClaims[0].resourceClaimTemplateName")


async def test_prices_by_flavor() -> None:
    """One for each flavor of the cluster and of the files; counted devices cost the same everywhere."""
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "large"},
        "spec": {"nodeLabels": {"size": "l"}},
    }
    answer = await ask(
        KINDS["pod"][0], TEMPLATE, CLASS, flavor, by_flavor=True, flavors={"small": {"size": "s"}}
    )
    assert [workload.flavor for workload in answer.workloads] == ["small", "large"]
    with pytest.raises(QuestionError, match="no ResourceFlavors"):
        await ask(KINDS["pod"][0], TEMPLATE, CLASS, by_flavor=True)


async def test_kueues_rules_on_demand() -> None:
    """A claim that a pod names is priced here, and not by Kueue."""
    spec = {**POD_SPEC, "resourceClaims": [{"name": "g", "resourceClaimName": "shared"}]}
    claim = named("resource.k8s.io/v1", "ResourceClaim", TEMPLATE["spec"]["spec"])  # type: ignore[index]
    claim["metadata"]["name"] = "shared"
    documents = (named("v1", "Pod", spec), claim, CLASS)
    (ours,) = (await ask(*documents)).workloads
    gpus = ours.pod_sets[0].resources[0]
    assert (gpus.name, gpus.each, gpus.once) == ("example.com/gpus", "0", "2")
    (theirs,) = (await ask(*documents, rules=KUEUE)).workloads
    assert theirs.no_price is not None


async def test_d76_what_is_measured_is_printed_in_binary_units() -> None:
    """Memory of partitions reads as memory does."""
    measure = {
        "name": "memory",
        "driver": "gpu.example.com",
        "deviceSelector": {"cel": {"expression": "true"}},
    }
    mapping = {
        "name": "gpu.memory",
        "deviceClassNames": ["gpu.example.com"],
        "sources": [{"counter": measure}],
    }
    configuration = {"resources": {"deviceClassMappings": [mapping]}}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    common = {"driver": "gpu.example.com", "nodeName": "node-a", "pool": pool}
    drawn = {"counterSet": "c", "counters": {"memory": {"value": "10Gi"}}}
    devices = [{"name": f"d{n}", "consumesCounters": [drawn]} for n in range(4)]
    total = {"name": "c", "counters": {"memory": {"value": "40Gi"}}}
    slices = [
        named("resource.k8s.io/v1", "ResourceSlice", {**common, "sharedCounters": [total]}),
        named("resource.k8s.io/v1", "ResourceSlice", {**common, "devices": devices}),
    ]
    slices[1]["metadata"] = {"name": "devices"}
    answer = await ask(
        KINDS["a job with few completions"][0],
        TEMPLATE,
        CLASS,
        *slices,
        configuration=configuration,
    )
    (pods,) = answer.workloads[0].pod_sets
    memory = pods.resources[0]
    assert (memory.name, memory.each, memory.total) == ("gpu.memory", "20Gi", "40Gi")
    assert pods.items[0].why == "memory 10Gi x 2"


async def test_files_without_anything_that_is_queued() -> None:
    """Daemon sets are on every node, queue or not."""
    daemons = named("apps/v1", "DaemonSet", labelled({}))
    with pytest.raises(QuestionError, match="nothing there would be queued"):
        await ask(daemons, TEMPLATE, CLASS)
    answer = await ask(daemons, KINDS["pod"][0], TEMPLATE, CLASS)
    assert answer.ignored == ("DaemonSet",)


def test_the_configuration_may_be_in_a_config_map() -> None:
    """That is how Kueue is installed."""
    text = yaml.safe_dump(CONFIGURATION)
    wrapped = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config"},
        "data": {"controller_manager_config.yaml": text},
    }
    for given in (text, yaml.safe_dump(wrapped)):
        assert configuration_in("k.yaml", given.encode()) == CONFIGURATION


@pytest.mark.parametrize("text", ["kind: Pod\napiVersion: v1\n", "- nonsense", "{"])
def test_files_without_a_configuration(text: str) -> None:
    """The file is named."""
    with pytest.raises(QuestionError, match=r"k\.yaml"):
        configuration_in("k.yaml", text.encode())


def test_mappings_that_are_wrong_are_named_with_their_file_and_field() -> None:
    """As the API server does it for objects."""
    wrong = {"resources": {"deviceClassMappings": [{"name": "", "deviceClassNames": []}]}}
    with pytest.raises(QuestionError) as caught:
        mappings_in("k.yaml", wrong)
    assert str(caught.value).startswith(
        "k.yaml: resources.deviceClassMappings[0].name: Required value"
    )


def test_gates_of_a_configuration() -> None:
    """Kueue's defaults unless it says otherwise."""
    assert not gates_in(CONFIGURATION).capacity
    switched = {"featureGates": {"KueueDRAIntegrationConsumableCapacity": True}}
    assert gates_in(switched).capacity
