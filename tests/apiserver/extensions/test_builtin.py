"""The definitions every instance has."""

from __future__ import annotations

from drayman.apiserver.extensions.builtin import builtin_definitions
from drayman.apiserver.instance.first_objects import create_builtin_definitions


def test_the_builtin_definitions_are_accepted_and_installed_once(play):
    """All are established; a second installation changes nothing."""

    async def scenario(api):
        core = api.server.core
        await create_builtin_definitions(core)
        revision = core.store.revision
        await create_builtin_definitions(core)
        assert core.store.revision == revision
        served = {f"{r.plural}.{r.group}" for r in core.resources if r.custom}
        assert served == {obj["metadata"]["name"] for obj in builtin_definitions()}
        assert {"podgroups.scheduling.x-k8s.io", "workloads.kueue.x-k8s.io"} <= served

    play(scenario)


def test_a_cluster_queue_gets_its_defaults_in_both_versions(play):
    """v1beta1 and v1beta2 read the same object; policies default as Kueue's do."""
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"namespaceSelector": {}, "cohort": "all"},
    }

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        made = await api("POST", "/apis/kueue.x-k8s.io/v1beta1/clusterqueues", queue)
        assert made.status == 201, made.body
        spec = (await api("GET", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q")).body["spec"]
        assert spec["queueingStrategy"] == "BestEffortFIFO"
        assert spec["preemption"] == {
            "reclaimWithinCohort": "Never",
            "withinClusterQueue": "Never",
        }
        assert (spec["stopPolicy"], spec["cohortName"]) == ("None", "all")

    play(scenario)


def test_the_queue_of_a_local_queue_cannot_change(play):
    """The rule of the definition refuses it."""
    path = "/apis/kueue.x-k8s.io/v1beta1/namespaces/default/localqueues"
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "LocalQueue",
        "metadata": {"name": "q"},
        "spec": {"clusterQueue": "a"},
    }

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        await api("POST", path, queue)
        change = {"spec": {"clusterQueue": "b"}}
        refused = await api("PATCH", f"{path}/q", change, "application/merge-patch+json")
        assert refused.causes == {("spec.clusterQueue", "FieldValueInvalid")}

    play(scenario)


def test_every_builtin_definition_says_what_it_is_for():
    """`kubectl explain` shows it of the kind, in every version."""
    for definition in builtin_definitions():
        for version in definition["spec"]["versions"]:
            text = version["schema"]["openAPIV3Schema"]["description"]
            assert text.endswith("."), definition["metadata"]["name"]


KAI_GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups"
KAI_TOPOLOGIES = "/apis/kai.scheduler/v1alpha1/topologies"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


def kai_group(**spec):
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": spec,
    }


def topology(api_version, *levels):
    return {
        "apiVersion": api_version,
        "kind": "Topology",
        "metadata": {"name": "racks"},
        "spec": {
            "levels": [
                level if isinstance(level, dict) else {"nodeLabel": level} for level in levels
            ]
        },
    }


def kai_queue(**spec):
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "g"},
        "spec": spec,
    }


REFUSED = {
    "both minima": (kai_group(minMember=1, minSubGroup=1), "spec"),
    "a negative minimum": (kai_group(minMember=-1), "spec.minMember"),
    "a word that it does not have": (kai_group(preemptibility="maybe"), "spec.preemptibility"),
    "a subgroup twice": (
        kai_group(subGroups=[{"name": "a"}, {"name": "a"}]),
        "spec.subGroups[1]",
    ),
    "a subgroup without a name": (
        kai_group(subGroups=[{"minMember": 1}]),
        "spec.subGroups[0].name",
    ),
}


def test_groups_of_kai_are_checked(play):
    """What KAI's own definition and webhook refuse at a glance. What fields do not know is kept."""

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        for case, (body, field) in REFUSED.items():
            refused = await api("POST", KAI_GROUPS, body)
            assert refused.status == 422, case
            assert field in {path for path, _ in refused.causes}, case
        subgroups = [{"name": "a", "minMember": 0}, {"name": "b", "parent": "a", "minMember": None}]
        made = await api("POST", KAI_GROUPS, kai_group(minSubGroup=1, subGroups=subgroups, later=3))
        assert made.status == 201, made.body
        assert made.body["spec"]["later"] == 3

    play(scenario)


def test_the_levels_of_a_topology_stay(play):
    """They cannot change, in any version of Kueue's; of KAI's, only their other names can."""

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        for version in ("v1alpha1", "v1beta1", "v1beta2"):
            path = f"/apis/kueue.x-k8s.io/{version}/topologies"
            made = await api("POST", path, topology(f"kueue.x-k8s.io/{version}", "block", "rack"))
            assert made.status == 201, made.body
            change = {"spec": topology("", "block")["spec"]}
            refused = await api("PATCH", f"{path}/racks", change, MERGE)
            assert refused.causes == {("spec.levels", "FieldValueInvalid")}
            await api("DELETE", f"{path}/racks")
        kai = {"nodeLabel": "block", "alias": "b"}
        assert (
            await api("POST", KAI_TOPOLOGIES, topology("kai.scheduler/v1alpha1", kai))
        ).status == 201
        renamed = {"spec": {"levels": [{"nodeLabel": "block", "alias": "c"}]}}
        assert (await api("PATCH", f"{KAI_TOPOLOGIES}/racks", renamed, MERGE)).status == 200
        other = {"spec": {"levels": [{"nodeLabel": "rack"}]}}
        refused = await api("PATCH", f"{KAI_TOPOLOGIES}/racks", other, MERGE)
        assert refused.causes == {("spec.levels", "FieldValueInvalid")}

    play(scenario)


def test_what_is_wrong_with_a_topology(play):
    """Each level once, the host last, and names that are names."""

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        for path, api_version in (
            (KAI_TOPOLOGIES, "kai.scheduler/v1alpha1"),
            ("/apis/kueue.x-k8s.io/v1beta2/topologies", "kueue.x-k8s.io/v1beta2"),
        ):
            for levels in (
                (),
                ("a", "a"),
                ("kubernetes.io/hostname", "a"),
                ("not a label",),
                ({},),
            ):
                refused = await api("POST", path, topology(api_version, *levels))
                assert refused.status == 422, (path, levels)
        twice = ({"nodeLabel": "a", "alias": "b"}, {"nodeLabel": "b"})
        refused = await api("POST", KAI_TOPOLOGIES, topology("kai.scheduler/v1alpha1", *twice))
        assert refused.status == 422

    play(scenario)


def as_installed(group, plural, kind, version, spec):
    """A definition in the form in which projects ship theirs."""
    whole = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object"},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"controller-gen.kubebuilder.io/version": "v0.16.1"},
        },
        "spec": {
            "group": group,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": ["pg"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": whole},
                }
            ],
        },
    }


def test_a_project_can_install_its_own_definition_over_ours(play):
    """By a patch or by apply. Objects stay, are served by the new definition, and can be made by it."""
    integer = {"type": "integer", "format": "int32"}
    cases = [
        ("scheduling.run.ai", "v2alpha2", {"minMember": integer, "queue": {"type": "string"}}),
        ("scheduling.x-k8s.io", "v1alpha1", {"minMember": integer}),
    ]

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        for number, (group, version, spec) in enumerate(cases):
            path = f"/apis/{group}/{version}/namespaces/default/podgroups"
            body = {
                "apiVersion": f"{group}/{version}",
                "kind": "PodGroup",
                "metadata": {"name": "before"},
                "spec": {"minMember": 2},
            }
            assert (await api("POST", path, body)).status == 201
            definition = as_installed(group, "podgroups", "PodGroup", version, spec)
            if group.endswith("k8s.io"):
                approval = "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"
                definition["metadata"]["annotations"]["api-approved.kubernetes.io"] = approval
            where = f"{DEFINITIONS}/podgroups.{group}"
            if number:
                applied = await api("PATCH", where, definition, MERGE)
            else:
                applied = await api(
                    "PATCH", where, definition, APPLY, fieldManager="k", force="true"
                )
            assert applied.status == 200, applied.body
            assert (await api("GET", f"{path}/before")).body["spec"] == {"minMember": 2}
            body["metadata"]["name"] = "after"
            body["spec"] = {"minMember": -5, "unknown": 1}
            made = await api("POST", path, body)
            assert made.body["spec"] == {"minMember": -5}, "by the rules of the new definition"

    play(scenario)


WRONG_QUEUES = {
    "a quota below -1": (kai_queue(resources={"gpu": {"quota": -2}}), "spec.resources.gpu.quota"),
    "a limit below 0 that is not -1": (
        kai_queue(resources={"memory": {"limit": -0.5}}),
        "spec.resources.memory.limit",
    ),
    "a negative weight": (
        kai_queue(resources={"cpu": {"overQuotaWeight": -1}}),
        "spec.resources.cpu.overQuotaWeight",
    ),
    "a queue above itself": (kai_queue(parentQueue="g"), "spec.parentQueue"),
    "a time that is none": (kai_queue(preemptMinRuntime="soon"), "spec.preemptMinRuntime"),
}


def test_what_is_wrong_with_a_queue(play):
    """The field is named; -1 is no limit, and parts of a GPU are amounts."""

    async def scenario(api):
        await create_builtin_definitions(api.server.core)
        path = "/apis/scheduling.run.ai/v2/queues"
        for case, (queue, field) in WRONG_QUEUES.items():
            refused = await api("POST", path, queue)
            assert field in {name for name, _ in refused.causes}, case
        gpu = {"quota": 0.5, "limit": -1, "overQuotaWeight": 0}
        fine = kai_queue(resources={"gpu": gpu}, parentQueue="p", reclaimMinRuntime="1h30m")
        assert (await api("POST", path, fine)).status == 201

    play(scenario)
