"""Pod Security admission: what a server refuses, warns of and notes, by the labels of a namespace."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from drayman.api.pod_security import Level, LevelVersion, PodSecuritySettings, Policy
from drayman.apiserver.protocol.access import User
from drayman.apiserver.protocol.exchange import Query, Request, Response
from drayman.apiserver.security.audit import AuditLog
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.embedded.store import Store

PREFIX = "pod-security.kubernetes.io/"
PRIVILEGED = {"privileged": True}
WHY = 'privileged (container "c" must not set securityContext.privileged=true)'
MERGE = {"content-type": "application/merge-patch+json"}


class _Named:
    """Believes what a header says about the user."""

    async def authenticate(self, request: Request) -> User:
        return User(request.header("user") or "someone")


@dataclass(slots=True)
class Here:
    server: ApiServer
    warnings: list[str] = field(default_factory=list)
    """Those of the last answer."""

    async def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        request = Request(method, f"/api/v1/{path}", Query(), headers or {}, data)
        answer = await self.server.handle(request)
        assert isinstance(answer, Response)
        self.warnings = list(answer.warnings)
        return answer.status, json.loads(answer.body)

    async def namespace(self, name: str = "ns", **labels: str) -> tuple[int, Any]:
        return await self.send("POST", "namespaces", {"metadata": named(name, **labels)})

    async def relabel(self, name: str = "ns", **labels: str | None) -> tuple[int, Any]:
        body = {"metadata": named(name, **labels)}
        return await self.send("PATCH", f"namespaces/{name}", body, MERGE)

    async def pod(
        self, name: str = "x", headers: dict[str, str] | None = None, **more: Any
    ) -> tuple[int, Any]:
        return await self.send("POST", "namespaces/ns/pods", pod(name, **more), headers)


@asynccontextmanager
async def serving(settings: PodSecuritySettings | None = None) -> AsyncIterator[Here]:
    store = Store.open(None)
    server = make_server(store, pod_security=settings)
    server.authenticator = _Named()
    try:
        yield Here(server)
    finally:
        store.close()


def named(name: str, **labels: Any) -> dict[str, Any]:
    keys = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in labels.items()}
    return {"name": name, "labels": keys}


def pod(name: str, context: Any = None, owner: str = "", **spec: Any) -> dict[str, Any]:
    owners = [
        {"apiVersion": "v1", "kind": "K", "name": "o", "uid": owner, "controller": True}
        for _ in range(bool(owner))
    ]
    container = {"name": "c", "image": "i", "securityContext": context or {}}
    return {
        "metadata": {"name": name, "ownerReferences": owners},
        "spec": {"containers": [container], **spec},
    }


async def test_a_pod_that_violates_the_enforced_level_is_refused() -> None:
    """The refusal names the level, the check, the container and the field, and the pod does not exist afterwards."""
    async with serving() as here:
        await here.namespace(enforce="baseline")
        status, body = await here.pod(context=PRIVILEGED)
        assert (status, body["reason"]) == (403, "Forbidden")
        assert (
            body["message"]
            == f'pods "x" is forbidden: violates PodSecurity "baseline:latest": {WHY}'
        )
        assert here.warnings == []
        assert (await here.send("GET", "namespaces/ns/pods/x"))[0] == 404
        assert (await here.pod())[0] == 201


@pytest.mark.parametrize("labels", [{}, {"enforce": "privileged"}])
async def test_namespaces_without_a_level_permit_everything(labels: dict[str, str]) -> None:
    """Without labels, and with the level `privileged`, a privileged pod is accepted without a warning."""
    async with serving() as here:
        await here.namespace(**labels)
        assert (await here.pod(context=PRIVILEGED, hostPID=True))[0] == 201
        assert here.warnings == []


async def test_a_version_selects_its_checks() -> None:
    """A level of an older version forbids what it forbade then."""
    async with serving() as here:
        await here.namespace(enforce="baseline", enforce_version="v1.33")
        probe = {"httpGet": {"host": "h", "port": 1}}
        containers = [{"name": "c", "image": "i", "livenessProbe": probe}]
        assert (await here.pod("old", containers=containers))[0] == 201
        await here.relabel(enforce_version="v1.34")
        status, body = await here.pod("new", containers=containers)
        assert status == 403
        assert "probe or lifecycle host" in body["message"]


@pytest.mark.parametrize("mode", ["warn", "audit"])
async def test_other_modes_refuse_nothing(mode: str, tmp_path: Path) -> None:
    """A pod that violates the level to warn of, or to audit, is accepted with a warning, or with a note in the audit log."""
    path = tmp_path / "audit.log"
    async with serving() as here:
        log = AuditLog(path, here.server.metrics.audit_errors)
        await here.namespace(**{mode: "baseline"})
        here.server.observers.append(log)
        assert (await here.pod(context=PRIVILEGED))[0] == 201
        text = f'would violate PodSecurity "baseline:latest": {WHY}'
        assert here.warnings == ([text] if mode == "warn" else [])
        log.close()
        notes = json.loads(path.read_text())["annotations"]
        assert notes[f"{PREFIX}enforce-policy"] == "privileged:latest"
        assert notes.get(f"{PREFIX}audit-violations") == (text if mode == "audit" else None)


def template_of(kind: str) -> dict[str, Any]:
    """An object that makes privileged pods."""
    labels = {"app": "x"}
    template: dict[str, Any] = {"metadata": {"labels": labels}, "spec": pod("", PRIVILEGED)["spec"]}
    spec: dict[str, Any] = {"template": template, "selector": {"matchLabels": labels}}
    if kind in ("Job", "CronJob"):
        template["spec"]["restartPolicy"] = "Never"
        del spec["selector"]
    if kind == "CronJob":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    if kind == "ReplicationController":
        spec["selector"] = labels
    if kind == "StatefulSet":
        spec["serviceName"] = "s"
    whole = {"template": template} if kind == "PodTemplate" else {"spec": spec}
    return {"metadata": {"name": "t"}, **whole}


TEMPLATES = {
    "PodTemplate": "/api/v1/namespaces/ns/podtemplates",
    "ReplicationController": "/api/v1/namespaces/ns/replicationcontrollers",
    "ReplicaSet": "/apis/apps/v1/namespaces/ns/replicasets",
    "Deployment": "/apis/apps/v1/namespaces/ns/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/ns/statefulsets",
    "DaemonSet": "/apis/apps/v1/namespaces/ns/daemonsets",
    "Job": "/apis/batch/v1/namespaces/ns/jobs",
    "CronJob": "/apis/batch/v1/namespaces/ns/cronjobs",
}


@pytest.mark.parametrize("kind", TEMPLATES)
async def test_templates_are_warned_of_and_not_refused(kind: str) -> None:
    """An object with a template of pods is accepted in a namespace that would refuse the pods, and the client is warned."""
    async with serving() as here:
        await here.namespace(enforce="baseline")
        data = json.dumps(template_of(kind)).encode()
        answer = await here.server.handle(Request("POST", TEMPLATES[kind], body=data))
        assert isinstance(answer, Response)
        assert (answer.status, list(answer.warnings)[:1]) == (
            201,
            [f'would violate PodSecurity "baseline:latest": {WHY}'],
        ), answer.body


async def test_only_changes_that_matter_are_judged() -> None:
    """A pod from before the level can be labelled; its image cannot be changed, and no debug container can be added."""
    async with serving() as here:
        await here.namespace()
        await here.pod(context=PRIVILEGED)
        await here.relabel(enforce="baseline")
        path = "namespaces/ns/pods/x"
        labelled = {"metadata": {"labels": {"a": "b"}}}
        assert (await here.send("PATCH", path, labelled, MERGE))[0] == 200
        container = {**pod("x", PRIVILEGED)["spec"]["containers"][0], "image": "other"}
        status, body = await here.send("PATCH", path, {"spec": {"containers": [container]}}, MERGE)
        assert status == 403, body
        debug = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}
        status, body = await here.send("PATCH", f"{path}/ephemeralcontainers", debug, MERGE)
        assert (status, WHY in body["message"]) == (403, True)
        ended = {"status": {"phase": "Failed"}}
        assert (await here.send("PATCH", f"{path}/status", ended, MERGE))[0] == 200


async def test_a_new_level_warns_of_pods_that_exist() -> None:
    """Pods that a stricter level would refuse are listed by fault, with the first name and the number of others."""
    async with serving() as here:
        await here.namespace()
        for name in ("b", "a", "c"):
            await here.pod(name, context=PRIVILEGED, owner="o" * name.count("b"))
        await here.pod("d", hostPID=True)
        await here.pod("e", hostPID=True)
        await here.pod("fine")
        status, _ = await here.relabel(enforce="baseline")
        assert status == 200
        assert here.warnings == [
            'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
            "a (and 2 other pods): privileged",
            "d (and 1 other pod): host namespaces",
        ]
        await here.relabel(warn="restricted")
        assert here.warnings == []
        await here.relabel(enforce="privileged")
        assert here.warnings == []


async def test_labels_must_make_sense() -> None:
    """A namespace with an unknown level or version is refused with the label; one that has it already can be changed otherwise."""
    async with serving() as here:
        status, body = await here.namespace(enforce="strict", warn_version="1")
        assert (status, body["reason"]) == (422, "Invalid")
        assert [each["field"] for each in body["details"]["causes"]] == [
            f"metadata.labels[{PREFIX}enforce]",
            f"metadata.labels[{PREFIX}warn-version]",
        ]
        await here.namespace(enforce="baseline")
        status, body = await here.relabel(enforce="")
        assert status == 422
        assert body["message"] == (
            f'Namespace "ns" is invalid: metadata.labels[{PREFIX}enforce]: Invalid value: "":'
            " must be one of privileged, baseline, restricted"
        )


EXEMPT = PodSecuritySettings(
    Policy(*(LevelVersion(Level.BASELINE),) * 3),
    users=frozenset({"root"}),
    runtime_classes=frozenset({"vm"}),
    namespaces=frozenset({"free"}),
)


async def test_defaults_and_exemptions() -> None:
    """The cluster's default level applies to namespaces without labels, except to exempt users, runtime classes and namespaces."""
    async with serving(EXEMPT) as here:
        await here.namespace()
        await here.namespace("free")
        vm = {"metadata": {"name": "vm"}, "handler": "vm"}
        path = "/apis/node.k8s.io/v1/runtimeclasses"
        await here.server.handle(Request("POST", path, body=json.dumps(vm).encode()))
        assert (await here.pod(context=PRIVILEGED))[0] == 403
        assert (await here.pod("u", {"user": "root"}, context=PRIVILEGED))[0] == 201
        assert (await here.pod("r", context=PRIVILEGED, runtimeClassName="vm"))[0] == 201
        body = pod("n", PRIVILEGED)
        assert (await here.send("POST", "namespaces/free/pods", body))[0] == 201
        await here.relabel("free", enforce="restricted", warn="baseline")
        assert here.warnings == [
            'namespace "free" is exempt from Pod Security, and the policy (enforce=restricted:latest, warn=baseline:latest)'
            " will be ignored"
        ]


async def test_app_armor_annotations_do_not_change() -> None:
    """A pod cannot get by an update the annotation that its creation would have been refused for."""
    async with serving() as here:
        await here.namespace(enforce="baseline")
        await here.pod()
        key = "container.apparmor.security.beta.kubernetes.io/c"
        change = {"metadata": {"annotations": {key: "unconfined"}}}
        status, body = await here.send("PATCH", "namespaces/ns/pods/x", change, MERGE)
        assert status == 422
        assert (
            f"metadata.annotations[{key}]: Forbidden: may not add AppArmor annotations"
            in body["message"]
        )
