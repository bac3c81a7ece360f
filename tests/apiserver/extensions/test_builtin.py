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
        assert (spec["stopPolicy"], spec["cohort"]) == ("None", "all")

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
