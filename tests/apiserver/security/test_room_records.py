"""Who may write which room is kept for a workload."""

from __future__ import annotations

from typing import Any

import pytest
from security.realm import MERGE, realm, rule

from drayman.apiserver.instance.first_objects import create_builtin_definitions
from drayman.apiserver.security.room_records import RoomRecords

GROUP = "kueue.x-k8s.io"
WORKLOADS = f"/apis/{GROUP}/v1beta2/namespaces/team/workloads"
EDIT = rule("workloads", "create update patch get", groups=GROUP)
ADMIT = rule("workloads/status", "update", groups=GROUP)
ROOM = "drayman.dev/room"


def workload(**annotations: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    pod_set = {"name": "main", "count": 1, "template": template}
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "annotations": annotations},
        "spec": {"queueName": "q", "podSets": [pod_set]},
    }


def annotated(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {ROOM: value}}}


@pytest.mark.parametrize(
    ("before", "change", "rules", "allowed"),
    [
        ({}, annotated("{}"), (EDIT,), False),
        ({ROOM: "{}"}, annotated('{"places":[]}'), (EDIT,), False),
        ({ROOM: "{}"}, annotated(None), (EDIT,), False),
        ({ROOM: "{}"}, {"spec": {"priority": 3}}, (EDIT,), True),
        ({}, annotated("{}"), (EDIT, ADMIT), True),
    ],
    ids=["set", "changed", "removed", "left alone", "by one who may admit"],
)
async def test_the_record_is_changed_by_those_who_may_admit(
    before: dict[str, str], change: dict[str, Any], rules: tuple[Any, ...], allowed: bool
) -> None:
    async with realm() as here:
        core = here.server.core
        await create_builtin_definitions(core)
        core.admission.plugins.append(RoomRecords(core.authorizer))
        await here.make(WORKLOADS, workload(**before))
        await here.let("ann", *rules)
        reply = await here.by("ann", "PATCH", f"{WORKLOADS}/w", change, MERGE)
        assert reply.status == (200 if allowed else 403), reply
        if not allowed:
            assert ROOM in reply.message
            assert 'user "ann" may not update workloads/status' in reply.message
        assert (await here.by("ann", "POST", WORKLOADS, workload())).status == 409
        copied = workload(**{ROOM: "{}"}) | {"metadata": {"name": "x", "annotations": {ROOM: "{}"}}}
        made = await here.by("ann", "POST", WORKLOADS, copied)
        assert made.status == (201 if ADMIT in rules else 403)
