"""Who may write what belongs to the admission of a workload."""

from __future__ import annotations

from typing import Any

import pytest
from security.realm import MERGE, realm, rule

from drayman.apiserver.instance.first_objects import create_builtin_definitions
from drayman.apiserver.security.admission_records import AdmissionRecords

GROUP = "kueue.x-k8s.io"
WORKLOADS = f"/apis/{GROUP}/v1beta2/namespaces/team/workloads"
EDIT = rule("workloads", "create update patch get", groups=GROUP)
ADMIT = rule("workloads/status", "update", groups=GROUP)
RECORDS = (
    "drayman.dev/room",
    "drayman.dev/claims",
    "kueue.x-k8s.io/workload-slice-replacement-for",
)


def workload(**annotations: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    pod_set = {"name": "main", "count": 1, "template": template}
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "annotations": annotations},
        "spec": {"queueName": "q", "podSets": [pod_set]},
    }


def annotated(record: str, value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {record: value}}}


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize(
    ("before", "after", "rules", "allowed"),
    [
        (None, "{}", (EDIT,), False),
        ("{}", '{"places":[]}', (EDIT,), False),
        ("{}", None, (EDIT,), False),
        ("{}", "{}", (EDIT,), True),
        (None, "{}", (EDIT, ADMIT), True),
    ],
    ids=["set", "changed", "removed", "left alone", "by one who may admit"],
)
async def test_records_are_changed_by_those_who_may_admit(
    record: str,
    before: str | None,
    after: str | None,
    rules: tuple[Any, ...],
    allowed: bool,
) -> None:
    async with realm() as here:
        core = here.server.core
        await create_builtin_definitions(core)
        core.admission.plugins.append(AdmissionRecords(core.authorizer))
        await here.make(WORKLOADS, workload(**({} if before is None else {record: before})))
        await here.let("ann", *rules)
        change = {**annotated(record, after), "spec": {"priority": 3}}
        reply = await here.by("ann", "PATCH", f"{WORKLOADS}/w", change, MERGE)
        assert reply.status == (200 if allowed else 403), reply
        if not allowed:
            assert record in reply.message
            assert 'user "ann" may not update workloads/status' in reply.message
        assert (await here.by("ann", "POST", WORKLOADS, workload())).status == 409
        copied = {**workload(), "metadata": {"name": "x", "annotations": {record: "{}"}}}
        made = await here.by("ann", "POST", WORKLOADS, copied)
        assert made.status == (201 if ADMIT in rules else 403)


PODS = "/api/v1/namespaces/team/pods"
CHANGE_PODS = rule("pods", "create update patch get")
MANAGED = "kueue.x-k8s.io/managed"
LETTING_GO: dict[str, dict[str, Any]] = {
    f"{gate} removed": {"spec": {"schedulingGates": [{"$patch": "delete", "name": gate}]}}
    for gate in (
        "kueue.x-k8s.io/admission",
        "kueue.x-k8s.io/topology",
        "kueue.x-k8s.io/elastic-job",
    )
} | {
    "all gates removed": {"spec": {"schedulingGates": None}},
    "the mark removed": {"metadata": {"labels": {MANAGED: None}}},
    "the mark changed": {"metadata": {"labels": {MANAGED: "false"}}},
}


@pytest.mark.parametrize("change", LETTING_GO)
async def test_pods_are_let_go_by_those_who_may_admit(change: str) -> None:
    """A gate of the queue, whichever it is, and the label by which the queue knows the pod; other gates are the tenant's."""
    gates = [
        {"name": name}
        for name in (
            "example.com/own",
            "kueue.x-k8s.io/admission",
            "kueue.x-k8s.io/topology",
            "kueue.x-k8s.io/elastic-job",
        )
    ]
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGates": gates}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {MANAGED: "true"}},
        "spec": spec,
    }
    strategic = "application/strategic-merge-patch+json"
    async with realm() as here:
        here.server.core.admission.plugins.append(AdmissionRecords(here.server.core.authorizer))
        await here.make(PODS, pod)
        await here.let("ann", CHANGE_PODS)
        await here.let("queue", CHANGE_PODS, ADMIT)
        own = {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/own"}]}}
        assert (await here.by("ann", "PATCH", f"{PODS}/p", own, strategic)).status == 200
        refused = await here.by("ann", "PATCH", f"{PODS}/p", LETTING_GO[change], strategic)
        assert refused.status == 403
        assert 'user "ann" may not update workloads/status' in refused.message
        allowed = await here.by("queue", "PATCH", f"{PODS}/p", LETTING_GO[change], strategic)
        assert allowed.status == 200
