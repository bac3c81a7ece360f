"""The table of hostile requests and objects. Each row is what a user with `edit` rights in one namespace could send."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp

from drayman.node.spdy.session import Session

CORE = "/api/v1/namespaces/hostile"
MAPS, PODS = f"{CORE}/configmaps", f"{CORE}/pods"
APPS = "/apis/apps/v1/namespaces/hostile"
JOBS = "/apis/batch/v1/namespaces/hostile/jobs"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/hostile/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/hostile/resourceclaimtemplates"
KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUED = f"/apis/{KUEUE}/namespaces/hostile/workloads"
POD_GROUPS = "/apis/scheduling.k8s.io/v1alpha3/namespaces/hostile/podgroups"
KAI = "scheduling.run.ai/v2alpha2"
KAI_GROUPS = f"/apis/{KAI}/namespaces/hostile/podgroups"
WIDGETS = "/apis/hostile.example/v1/namespaces/hostile/widgets"
RBAC = "rbac.authorization.k8s.io"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
CONTAINER = {"name": "c", "image": "i"}

LEFTOVERS = (
    f"{APPS}/deployments",
    f"{APPS}/statefulsets",
    f"{APPS}/replicasets",
    JOBS,
    QUEUED,
    POD_GROUPS,
    KAI_GROUPS,
    PODS,
    CLAIMS,
    TEMPLATES,
    MAPS,
    WIDGETS,
    f"{CORE}/persistentvolumeclaims",
    f"{CORE}/secrets",
    f"{CORE}/events",
    "/apis/policy/v1/namespaces/hostile/poddisruptionbudgets",
)
"""Collections that rows fill, owners before what they own."""

_TEXT = {"type": "string"}
_LONG = " || ".join(["device.driver == 'a'"] * 40)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "any": {
                    "type": "array",
                    "items": {
                        "type": "string",
                        "anyOf": [{"pattern": f"^x{n}$"} for n in range(100)],
                    },
                },
                "enum": {
                    "type": "array",
                    "items": {"type": "string", "enum": [f"value-{n}" for n in range(5_000)]},
                },
                "regex": {"type": "string", "pattern": "^(a+)+$"},
                "rules": {
                    "type": "array",
                    "maxItems": 1000,
                    "items": {"type": "string", "maxLength": 10},
                    "x-kubernetes-validations": [
                        {"rule": "self.all(x, self.exists_one(y, x == y))"}
                    ],
                },
                "set": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
                "map": {
                    "type": "array",
                    "items": {"type": "object", "required": ["k"], "properties": {"k": _TEXT}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                },
            },
        }
    },
}

SETUP: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/api/v1/namespaces", {"metadata": {"name": "hostile"}}),
    (f"{CORE}/serviceaccounts", {"metadata": {"name": "mallory"}}),
    (
        f"/apis/{RBAC}/v1/namespaces/hostile/rolebindings",
        {
            "metadata": {"name": "mallory-edits"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", "name": "mallory", "namespace": "hostile"}],
        },
    ),
    (
        f"/apis/{RBAC}/v1/clusterroles",
        {
            "metadata": {
                "name": "edit-widgets",
                "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"},
            },
            "rules": [
                {"apiGroups": ["hostile.example"], "resources": ["*"], "verbs": ["*"]},
                {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]},
            ],
        },
    ),
    (
        TEMPLATES,
        {
            "metadata": {"name": "t"},
            "spec": {
                "spec": {
                    "devices": {
                        "requests": [{"name": "r", "exactly": {"deviceClassName": "nothing"}}]
                    }
                }
            },
        },
    ),
    ("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "any"}, "spec": {}}),
    (
        f"/apis/{KUEUE}/resourceflavors",
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "any"}},
    ),
    (
        f"/apis/{KUEUE}/clusterqueues",
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": "hostile"},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": ["cpu", "example.com/gpu"],
                        "flavors": [
                            {
                                "name": "any",
                                "resources": [
                                    {"name": name, "nominalQuota": 16}
                                    for name in ("cpu", "example.com/gpu")
                                ],
                            }
                        ],
                    }
                ],
            },
        },
    ),
    (
        f"/apis/{KUEUE}/namespaces/hostile/localqueues",
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "hostile"},
            "spec": {"clusterQueue": "hostile"},
        },
    ),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "important"}, "value": 1_000_000},
    ),
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": "widgets.hostile.example"},
            "spec": {
                "group": "hostile.example",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": _SCHEMA},
                    }
                ],
            },
        },
    ),
)


@dataclass(slots=True)
class Attacker:
    """The hostile user. Every answer is counted."""

    client: aiohttp.ClientSession
    url: str
    token: str
    tls: ssl.SSLContext
    answers: Counter[str]

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        accept: str = "application/json",
    ) -> int:
        """A request; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Content-Type": kind, "Accept": accept}
        try:
            async with self.client.request(
                method, f"{self.url}{path}", data=data, headers=headers
            ) as answer:
                await answer.read()
                self.answers[str(answer.status)] += 1
                return answer.status
        except aiohttp.ClientError as error:
            self.answers[type(error).__name__] += 1
            return 0

    async def post(self, path: str, **members: Any) -> int:
        return await self.send("POST", path, {"metadata": {"generateName": "h-"}, **members})

    async def together(self, requests: Iterable[Awaitable[Any]]) -> None:
        await asyncio.gather(*requests)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = urlsplit(self.url)
        return await asyncio.open_connection(address.hostname, address.port, ssl=self.tls)


Row = Callable[[Attacker], Awaitable[Any]]
ROWS: dict[str, Row] = {}
OPTIONS: dict[str, tuple[str, ...]] = {}
"""Options of `drayman up` for rows that need other nodes than the rest."""


def row(name: str, *options: str) -> Callable[[Row], Row]:
    def register(made: Row) -> Row:
        ROWS[name] = made
        if options:
            OPTIONS[name] = options
        return made

    return register


def metadata(**members: Any) -> dict[str, Any]:
    return {"generateName": "h-", **members}


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": metadata(), "spec": {"containers": [CONTAINER], **spec}}


def template(**spec: Any) -> dict[str, Any]:
    labels = {"app": "h"}
    made = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER], **spec}}
    return {"selector": {"matchLabels": labels}, "template": made}


def claim_spec(*expressions: str, requests: int = 1, device_class: str = "x") -> dict[str, Any]:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    exactly = {"deviceClassName": device_class, "selectors": selectors}
    made = [{"name": f"r{n}", "exactly": exactly} for n in range(requests)]
    return {"devices": {"requests": made}}


def names(count: int, prefix: str = "n") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


# --- nothing, for comparison -------------------------------------------------------------------------


@row("nothing")
async def _(a: Attacker) -> None:
    await asyncio.sleep(3)


# --- metadata ----------------------------------------------------------------------------------------


def _owners(count: int, *, controller: bool = False) -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": controller}
        for name in names(count)
    ]


OBJECTS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "15,000 owners": (MAPS, lambda: {"metadata": metadata(ownerReferences=_owners(15_000))}),
    "9,000 controlling owners": (
        MAPS, lambda: {"metadata": metadata(ownerReferences=_owners(9_000, controller=True))}),
    "the same owner 19,000 times": (
        MAPS, lambda: {"metadata": metadata(ownerReferences=_owners(1) * 19_000)}),
    "99,000 finalizers": (
        MAPS, lambda: {"metadata": metadata(finalizers=[f"a/{n}" for n in range(99_000)])}),
    "40,000 labels": (MAPS, lambda: {"metadata": metadata(labels=dict.fromkeys(names(40_000), "v"))}),
    "40,000 invalid labels": (
        MAPS, lambda: {"metadata": metadata(labels=dict.fromkeys(names(40_000, "/"), "v"))}),
    "40,000 annotations": (
        MAPS, lambda: {"metadata": metadata(annotations=dict.fromkeys(names(40_000), ""))}),
    "90,000 keys": (MAPS, lambda: {"metadata": metadata(), "data": dict.fromkeys(names(90_000), "")}),
    "45,000 invalid keys": (
        MAPS, lambda: {"metadata": metadata(), "data": dict.fromkeys(names(45_000, "/"), "")}),
    "a value of 2.9 MB": (MAPS, lambda: {"metadata": metadata(), "data": {"a": "x" * 2_900_000}}),
    "2,000 managers": (
        MAPS, lambda: {"metadata": metadata(managedFields=[
            {"manager": name, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {f"f:{name}": {}}}}
            for name in names(2_000)])}),
    "32 x 32 selectors": (
        CLAIMS, lambda: {"metadata": metadata(), "spec": claim_spec(
            *(f"device.attributes['d'].a{n} == 'x' || {_LONG}" for n in range(32)), requests=32)}),
    "one long selector": (
        CLAIMS, lambda: {"metadata": metadata(), "spec": claim_spec(
            " || ".join(["device.driver == 'a'"] * 480))}),
    "a deep selector": (
        CLAIMS, lambda: {"metadata": metadata(), "spec": claim_spec("(" * 240 + "true" + ")" * 240)}),
    "a selector of nested loops": (
        CLAIMS, lambda: {"metadata": metadata(), "spec": claim_spec(
            *["[1,2,3].all(a, [1,2,3].all(b, [1,2,3].all(c, [1,2,3].all(d, a + b + c + d > 0))))"] * 32,
            requests=32)}),
    "a selector with regular expressions": (
        CLAIMS, lambda: {"metadata": metadata(), "spec": claim_spec(
            *["device.driver.matches('(a+)+(b+)+(c|d|e)*$')"] * 32, requests=32)}),
    "a template of 32 x 32 selectors": (
        TEMPLATES, lambda: {"metadata": metadata(), "spec": {"spec": claim_spec(
            *(f"device.attributes['d'].b{n} == 'x'" for n in range(32)), requests=32)}}),
    "5,000 template claims": (
        PODS, lambda: pod(resourceClaims=[
            {"name": n, "resourceClaimTemplateName": "t"} for n in names(5_000)])),
    "20,000 template claims": (
        PODS, lambda: pod(resourceClaims=[
            {"name": n, "resourceClaimTemplateName": "t"} for n in names(20_000)])),
    "20,000 named claims": (
        PODS, lambda: pod(resourceClaims=[
            {"name": n, "resourceClaimName": n} for n in names(20_000)])),
    "1,000 containers": (
        PODS, lambda: pod(containers=[{"name": n, "image": "i"} for n in names(1_000)])),
    "30,000 variables": (
        PODS, lambda: pod(containers=[
            {**CONTAINER, "env": [{"name": n, "value": "v"} for n in names(30_000)]}])),
    "20,000 ports": (
        PODS, lambda: pod(containers=[
            {**CONTAINER, "ports": [{"containerPort": 1 + n % 65_535} for n in range(20_000)]}])),
    "20,000 host ports": (
        PODS, lambda: pod(containers=[{**CONTAINER, "ports": [
            {"containerPort": 1 + n, "hostPort": 1 + n} for n in range(20_000)]}])),
    "15,000 volumes": (
        PODS, lambda: pod(volumes=[{"name": n, "emptyDir": {}} for n in names(15_000)])),
    "15,000 mounts": (
        PODS, lambda: pod(
            volumes=[{"name": "v", "emptyDir": {}}],
            containers=[{**CONTAINER, "volumeMounts": [
                {"name": "v", "mountPath": f"/{n}"} for n in range(15_000)]}])),
    "30,000 tolerations": (
        PODS, lambda: pod(tolerations=[{"key": n, "operator": "Exists"} for n in names(30_000)])),
    "5,000 affinity terms": (
        PODS, lambda: pod(affinity={"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": n, "labelSelector": {"matchLabels": {n: "x"}}}
                for n in names(5_000)]}})),
    "5,000 node terms": (
        PODS, lambda: pod(affinity={"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": n, "operator": "In", "values": ["x"]}]}
                for n in names(5_000)]}}})),
    "2,000 spread constraints": (
        PODS, lambda: pod(topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": n, "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {n: "x"}}} for n in names(2_000)])),
    "90,000 arguments": (PODS, lambda: pod(containers=[{**CONTAINER, "args": names(90_000)}])),
    "2^31-1 replicas of a StatefulSet": (
        f"{APPS}/statefulsets",
        lambda: {"metadata": metadata(), "spec": {
            "replicas": 2**31 - 1, "serviceName": "s", "podManagementPolicy": "Parallel",
            **template()}}),
    "2^31-1 replicas of a Deployment": (
        f"{APPS}/deployments",
        lambda: {"metadata": metadata(), "spec": {"replicas": 2**31 - 1, **template()}}),
    "2^31-1 replicas of a ReplicaSet": (
        f"{APPS}/replicasets",
        lambda: {"metadata": metadata(), "spec": {"replicas": 2**31 - 1, **template()}}),
    "2^31-1 pods of a Job": (
        JOBS, lambda: {"metadata": metadata(), "spec": {
            "parallelism": 2**31 - 1, "completions": 2**31 - 1,
            "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}}),
    "100,000 indexes of a Job": (
        JOBS, lambda: {"metadata": metadata(), "spec": {
            "parallelism": 1_000, "completions": 100_000, "completionMode": "Indexed",
            "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}}),
    "a Job with 1,000 claims a pod": (
        JOBS, lambda: {"metadata": metadata(), "spec": {
            "parallelism": 100, "completions": 100, "template": {"spec": {
                "restartPolicy": "Never", "containers": [CONTAINER], "resourceClaims": [
                    {"name": n, "resourceClaimTemplateName": "t"} for n in names(1_000)]}}}}),
    "a Job with 256 claims a pod": (
        JOBS, lambda: {"metadata": metadata(), "spec": {
            "parallelism": 10_000, "completions": 10_000, "template": {"spec": {
                "restartPolicy": "Never", "containers": [CONTAINER], "resourceClaims": [
                    {"name": n, "resourceClaimTemplateName": "t"} for n in names(256)]}}}}),
    "a StatefulSet with 200 volumes a pod": (
        f"{APPS}/statefulsets",
        lambda: {"metadata": metadata(), "spec": {
            "replicas": 10_000, "serviceName": "s", "podManagementPolicy": "Parallel",
            **template(nodeSelector={"no": "where"}), "volumeClaimTemplates": [
                {"metadata": {"name": n}, "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}}}} for n in names(200)]}}),
    "a Deployment of large pods": (
        f"{APPS}/deployments",
        lambda: {"metadata": metadata(), "spec": {"replicas": 1_000, **template(containers=[
            {**CONTAINER, "env": [{"name": n, "value": "v"} for n in names(20_000)]}])}}),
    "anyOf over 20,000 items": (
        WIDGETS, lambda: _widget(any=[f"y{n}" for n in range(20_000)])),
    "enum over 50,000 items": (
        WIDGETS, lambda: _widget(enum=[f"value-{n % 5_000}" for n in range(50_000)])),
    "enum over 50,000 wrong items": (WIDGETS, lambda: _widget(enum=names(50_000))),
    "a pattern that backtracks": (WIDGETS, lambda: _widget(regex="a" * 60 + "!")),
    "a rule over 1,000 items": (WIDGETS, lambda: _widget(rules=names(1_000))),
    "a set of 90,000": (WIDGETS, lambda: _widget(set=names(90_000))),
    "a map list of 45,000": (WIDGETS, lambda: _widget(map=[{"k": n} for n in names(45_000)])),
}  # fmt: skip


def _widget(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "hostile.example/v1",
        "kind": "Widget",
        "metadata": metadata(),
        "spec": spec,
    }


def _object_row(path: str, body: Callable[[], dict[str, Any]]) -> Row:
    async def send(a: Attacker) -> None:
        await a.send("POST", path, body())
        await asyncio.sleep(2)  # for the controllers

    return send


ROWS |= {name: _object_row(*made) for name, made in OBJECTS.items()}


# --- selectors that the scheduler evaluates ----------------------------------------------------------

_TEN = "[1,2,3,4,5,6,7,8,9,10]"
_COSTLY = (
    f"{_TEN}.all(a,{_TEN}.all(b,{_TEN}.all(c,{_TEN}.all(d,{_TEN}.all(e, a + b > 0)))))"
    " && device.attributes['x'].y != 'z{number}'"
)
SELECTED: dict[str, Callable[[], dict[str, Any]]] = {
    "costly selectors on every device": lambda: claim_spec(
        *(_COSTLY.replace("{number}", str(n)) for n in range(32)), device_class="any"
    ),
    "three selectors of 9,000 letters": lambda: claim_spec(
        *(f"{n} in [{','.join(['1'] * 4_400)}]" for n in range(1, 4)), device_class="any"
    ),
    "1,024 selectors on every device": lambda: claim_spec(
        *(f"device.driver != 'a{n}'" for n in range(32)), requests=32, device_class="any"
    ),
}


def _selected_row(spec: Callable[[], dict[str, Any]]) -> Row:
    async def send(a: Attacker) -> None:
        await a.send("POST", CLAIMS, {"metadata": {"name": "selected"}, "spec": spec()})
        await a.send(
            "POST", PODS, pod(resourceClaims=[{"name": "c", "resourceClaimName": "selected"}])
        )
        await asyncio.sleep(5)  # for the scheduler

    return send


ROWS |= {name: _selected_row(spec) for name, spec in SELECTED.items()}


# --- bodies ------------------------------------------------------------------------------------------

BODIES: dict[str, tuple[str, bytes]] = {
    "90,000 duplicate keys": (
        "application/json", b'{"metadata":{"name":"d"},"data":{' + b'"a":"b",' * 90_000 + b'"a":"b"}}'),
    "90,000 unknown fields": (
        "application/json",
        b"{" + b",".join(b'"x%d":1' % n for n in range(90_000)) + b"}"),
    "JSON of depth 500,000": ("application/json", b"[" * 500_000),
    "JSON of 1,000,000 numbers": (
        "application/json", b'{"metadata":{"name":"n"},"data":[' + b"1," * 1_000_000 + b"1]}"),
    "YAML of depth 100,000": ("application/yaml", b"[" * 100_000),
    "YAML of aliases": (
        "application/yaml",
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (97 + n, 97 + n, b",".join([b"*%c" % (96 + n)] * 9))
                   for n in range(1, 12))),
    "YAML of 100,000 lines": (
        "application/yaml",
        b"metadata:\n  name: y\ndata:\n" + b"".join(b"  k%d: v\n" % n for n in range(100_000))),
    "3 MB that are not UTF-8": ("application/json", b'{"data":"' + b"\xff" * 2_900_000 + b'"}'),
}  # fmt: skip


def _body_row(kind: str, body: bytes) -> Row:
    async def send(a: Attacker) -> None:
        await a.together(a.send("POST", MAPS, body, kind) for _ in range(4))

    return send


ROWS |= {name: _body_row(*made) for name, made in BODIES.items()}


@row("300 KB that are 300 MB decompressed")
async def _(a: Attacker) -> None:
    body = gzip.compress(b"a" * 300_000_000)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    for _ in range(5):
        async with a.client.post(f"{a.url}{MAPS}", data=body, headers=headers) as answer:
            await answer.read()
            a.answers[str(answer.status)] += 1


# --- patches -----------------------------------------------------------------------------------------


async def _made(a: Attacker, name: str, path: str, body: dict[str, Any]) -> str:
    body["metadata"] = {"name": name}
    await a.send("POST", path, body)
    return f"{path}/{name}"


@row("apply over reversed lists")
async def _(a: Attacker) -> None:
    """Each item of a list of maps is found by its key."""
    env = [{"name": name, "value": "v"} for name in names(10_000)]
    for number, items in enumerate((env, env[::-1])):
        containers = [{**CONTAINER, "env": items}]
        body = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "reversed"},
            "spec": {"containers": containers},
        }  # fmt: skip
        query = f"?fieldManager=m{number}&force=true"
        await a.send("PATCH", f"{PODS}/reversed{query}", body, APPLY)


@row("apply by 300 managers")
async def _(a: Attacker) -> None:
    data = dict.fromkeys(names(300), "v")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "managed"}, "data": data}
    for number in range(300):
        query = f"?fieldManager=m{number}&force=true"
        await a.send("PATCH", f"{MAPS}/managed{query}", body, APPLY)


@row("strategic merge of 15,000 variables")
async def _(a: Attacker) -> None:
    env = [{"name": name, "value": "v"} for name in names(15_000)]
    spec = template()
    path = await _made(a, "merged", f"{APPS}/deployments", {"spec": {"replicas": 0, **spec}})
    for items in (env, env[::-1]):
        order = [{"name": item["name"]} for item in items]
        containers = [{**CONTAINER, "env": items, "$setElementOrder/env": order}]
        change = {"spec": {"template": {"spec": {"containers": containers}}}}
        await a.send("PATCH", path, change, STRATEGIC)


@row("10,000 moves in a long list")
async def _(a: Attacker) -> None:
    path = await _made(a, "moved", WIDGETS, _widget(set=names(30_000)))
    moves = [{"op": "move", "from": "/spec/set/0", "path": "/spec/set/29999"}] * 10_000
    await a.send("PATCH", path, moves, JSON_PATCH)


@row("copies that double")
async def _(a: Attacker) -> None:
    path = await _made(a, "copied", MAPS, {"data": {"a": "b"}})
    deep = [{"op": "copy", "from": "/data", "path": "/data" + "/x" * 2**n} for n in range(16)]
    wide = [{"op": "copy", "from": "/data", "path": f"/data/c{n}"} for n in range(40)]
    for operations in (deep, wide):
        await a.send("PATCH", path, operations, JSON_PATCH)


@row("200 patches of a large object")
async def _(a: Attacker) -> None:
    path = await _made(a, "large", MAPS, {"data": dict.fromkeys(names(40_000), "")})
    await a.together(
        a.send("PATCH", path, {"data": {"a": str(number)}}, MERGE) for number in range(200)
    )


# --- floods ------------------------------------------------------------------------------------------


@row("2,000 creations at once")
async def _(a: Attacker) -> None:
    await a.together(a.post(MAPS, data={"a": "b"}) for _ in range(2_000))


@row("2,000 reviews at once")
async def _(a: Attacker) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    spec = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    await a.together(a.send("POST", path, {"spec": spec}) for _ in range(2_000))


@row("1,000 tokens at once")
async def _(a: Attacker) -> None:
    path = f"{CORE}/serviceaccounts/mallory/token"
    await a.together(a.send("POST", path, {"spec": {}}) for _ in range(1_000))


@row("500 pods that fit nowhere")
async def _(a: Attacker) -> None:
    requests = {"requests": {"cpu": "100000"}}
    body = pod(containers=[{**CONTAINER, "resources": requests}])
    await a.together(a.send("POST", PODS, body) for _ in range(500))


@row("3,000 pods that wait for one claim")
async def _(a: Attacker) -> None:
    entries = [{"name": "c", "resourceClaimName": "awaited"}]
    for _ in range(6):
        await a.together(a.send("POST", PODS, pod(resourceClaims=entries)) for _ in range(500))
    claim = {"metadata": {"name": "awaited"}, "spec": claim_spec()}
    for _ in range(3):
        await a.send("POST", CLAIMS, claim)
        await asyncio.sleep(2)
        await a.send("DELETE", f"{CLAIMS}/awaited")


@row("a Deployment scaled up and down")
async def _(a: Attacker) -> None:
    spec = template(nodeSelector={"no": "where"})
    path = await _made(a, "scaled", f"{APPS}/deployments", {"spec": {"replicas": 0, **spec}})
    for replicas in (5_000, 0, 5_000, 0):
        await a.send("PATCH", path, {"spec": {"replicas": replicas}}, MERGE)
        await asyncio.sleep(5)


async def _make_budgets(a: Attacker) -> None:
    path = "/apis/policy/v1/namespaces/hostile/poddisruptionbudgets"
    rules = [{"key": name, "operator": "DoesNotExist"} for name in names(100)]
    spec = {"minAvailable": 1, "selector": {"matchExpressions": rules}}
    for _ in range(4):
        await a.together(a.post(path, spec=spec) for _ in range(250))


@row("1,000 budgets over 1,000 pods")
async def _(a: Attacker) -> None:
    await _make_budgets(a)
    nowhere = template(nodeSelector={"no": "where"})
    await a.post(f"{APPS}/replicasets", spec={"replicas": 1_000, **nowhere})
    await asyncio.sleep(5)


async def _preempt(a: Attacker, count: int, **spec: Any) -> None:
    """Fill the node with pods, and send more important ones."""
    await a.together(a.send("POST", PODS, pod()) for _ in range(110))
    await asyncio.sleep(4)
    important = pod(priorityClassName="important", **spec)
    await a.together(a.send("POST", PODS, important) for _ in range(count))
    await asyncio.sleep(10)


@row("preemption of pods with 1,000 budgets")
async def _(a: Attacker) -> None:
    await _make_budgets(a)
    await _preempt(a, 60)


@row("preemption by pods with 256 affinity terms")
async def _(a: Attacker) -> None:
    rules = [{"key": name, "operator": "NotIn", "values": ["x"]} for name in names(256)]
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [rule]}}
        for rule in rules
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    await _preempt(a, 10, affinity={"podAntiAffinity": required})


@row("2,000 watches of 2,000 objects")
async def _(a: Attacker) -> None:
    await a.together(a.post(MAPS, data={"a": "b" * 500}) for _ in range(2_000))
    await _watch_together(a)


@row("2,000 watches")
async def _watch_together(a: Attacker) -> None:
    async def watch() -> None:
        try:
            async with a.client.get(f"{a.url}{MAPS}?watch=1&timeoutSeconds=3") as answer:
                a.answers[str(answer.status)] += 1
                await answer.read()
        except aiohttp.ClientError as error:
            a.answers[type(error).__name__] += 1

    await a.together(watch() for _ in range(2_000))


@row("100 lists of 3,000 objects")
async def _(a: Attacker) -> None:
    for _ in range(6):
        await a.together(a.post(MAPS, data={"a": "b" * 500}) for _ in range(500))
    await a.together(a.send("GET", MAPS) for _ in range(100))
    await a.send("DELETE", MAPS)


_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
READS: dict[str, tuple[str, str]] = {
    "tables of 3,000 objects": (MAPS, _TABLE),
    "pretty lists of 3,000 objects": (f"{MAPS}?pretty=true", "application/json"),
    "lists of 3,000 objects in YAML": (MAPS, "application/yaml"),
    "lists of 3,000 objects in Protobuf": (MAPS, "application/vnd.kubernetes.protobuf"),
    "pages of 3,000 objects": (f"{MAPS}?limit=2999", "application/json"),
    "lists from 3,000 objects by label": (
        f"{MAPS}?labelSelector={quote('a in (b,c),!d')}",
        "application/json",
    ),
}


def _read_row(path: str, accept: str) -> Row:
    async def send(a: Attacker) -> None:
        for _ in range(6):
            await a.together(a.post(MAPS, data={"a": "b" * 500}) for _ in range(500))
        await a.together(a.send("GET", path, accept=accept) for _ in range(20))
        await a.send("DELETE", MAPS)

    return send


ROWS |= {name: _read_row(*made) for name, made in READS.items()}


@row("descriptions of the whole API")
async def _(a: Attacker) -> None:
    paths = ("/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/apis", "/api/v1")
    for accept in (
        "application/json",
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    ):
        await a.together(a.send("GET", path, accept=accept) for path in paths for _ in range(10))


@row("the rights of a user, 500 times at once")
async def _(a: Attacker) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    await a.together(a.send("POST", path, {"spec": {"namespace": "hostile"}}) for _ in range(500))


@row("a label selector of 60,000 letters")
async def _(a: Attacker) -> None:
    selector = quote(",".join(f"k{n}=v" for n in range(1_400)))
    await a.together(a.send("GET", f"{MAPS}?labelSelector={selector}") for _ in range(20))


@row("50 watches from 3,000 objects by 700 labels")
async def _(a: Attacker) -> None:
    for _ in range(6):
        await a.together(a.post(MAPS, data={"a": "b"}) for _ in range(500))
    selector = quote(",".join(f"k{n}!=v" for n in range(700)))
    path = f"{MAPS}?watch=1&timeoutSeconds=3&resourceVersion=0&labelSelector={selector}"
    await a.together(a.send("GET", path) for _ in range(50))


@row("100 secrets of 1 MB")
async def _(a: Attacker) -> None:
    data = {"a": "eHh4" * 250_000}
    for _ in range(10):
        await a.together(a.post(f"{CORE}/secrets", data=data) for _ in range(10))


@row("2,000 events")
async def _(a: Attacker) -> None:
    involved = {"kind": "Pod", "namespace": "hostile", "name": "p"}
    await a.together(
        a.post(f"{CORE}/events", involvedObject=involved, reason="r", message="m" * 900)
        for _ in range(2_000)
    )


# --- connections -------------------------------------------------------------------------------------


@row("1,000 idle connections")
async def _(a: Attacker) -> None:
    connections = await asyncio.gather(*(a.connect() for _ in range(1_000)), return_exceptions=True)
    a.answers.update(
        "refused" if isinstance(each, BaseException) else "open" for each in connections
    )
    await asyncio.sleep(3)
    for each in connections:
        if not isinstance(each, BaseException):
            each[1].transport.abort()


@row("100 half-sent bodies")
async def _(a: Attacker) -> None:
    """And then a large write of the same user, to see whether there is room for it."""
    head = (
        f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {a.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 3000000\r\n\r\n{"
    ).encode()
    connections = await asyncio.gather(*(a.connect() for _ in range(100)))
    for _, writer in connections:
        writer.write(head)
    await asyncio.sleep(2)
    await a.post(MAPS, data={"a": "x" * 500_000})
    for _, writer in connections:
        writer.transport.abort()


@row("500 slow headers")
async def _(a: Attacker) -> None:
    connections = await asyncio.gather(*(a.connect() for _ in range(500)))
    for _ in range(20):
        for _, writer in connections:
            writer.write(b"G")
        await asyncio.sleep(0.1)
    for _, writer in connections:
        writer.transport.abort()


@row("1,000 requests in one packet")
async def _(a: Attacker) -> None:
    reader, writer = await a.connect()
    request = f"GET {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {a.token}\r\n\r\n".encode()
    writer.write(request * 1_000)
    try:
        async with asyncio.timeout(5):
            while await reader.read(1 << 16):
                a.answers["read"] += 1
    except TimeoutError:
        pass
    writer.transport.abort()


# --- gangs, templates and quota ----------------------------------------------------------------------

_CHARGES = Path(__file__).parents[1] / "examples" / "quota" / "configuration.yaml"
GPUS = ("--profile", "dgx-h100=2", "--queue-config", str(_CHARGES))
GANG = "drayman.dev/gang"


def _selectors(count: int = 32, mark: str = "") -> list[str]:
    """Selectors with a size and a regular expression each."""
    return [
        f"size(device.driver) > {n} || device.driver.matches('^(a|b)+{mark}{n}$') || true"
        for n in range(count)
    ]


def job(pods: int, *, gang: int = 0, queue: str = "", **spec: Any) -> dict[str, Any]:
    made = metadata()
    if gang:
        made["annotations"] = {GANG: str(gang)}
    if queue:
        made["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    content = {"restartPolicy": "Never", "containers": [CONTAINER], **spec}
    return {
        "metadata": made,
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": content}},
    }


def _costly(requests: int = 16) -> dict[str, Any]:
    return claim_spec(*_selectors(), requests=requests, device_class="gpu.nvidia.com")


def from_template(name: str = "costly") -> dict[str, Any]:
    """What a pod needs for a claim from a template."""
    return {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": name}]}


async def make_template(a: Attacker, spec: dict[str, Any], name: str = "costly") -> None:
    await a.send("POST", TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": spec}})


async def _pods(a: Attacker) -> int:
    """How many pods there are."""
    async with a.client.get(f"{a.url}{PODS}?limit=1") as answer:
        page = await answer.json()
    return len(page.get("items", ())) + page.get("metadata", {}).get("remainingItemCount", 0)


async def _settle(a: Attacker, seconds: float = 20) -> None:
    """Wait until the number of pods has been the same for two seconds, and some more for the scheduler."""
    before, since = -1, 0
    for _ in range(int(seconds * 4)):
        count = await _pods(a)
        before, since = count, since + 1 if count == before else 0
        if since >= 8:
            break
        await asyncio.sleep(0.25)
    await asyncio.sleep(3)


async def _run_job(a: Attacker, body: dict[str, Any]) -> None:
    """Create a Job, delete it when all its pods are made, and let the server collect them."""
    body["metadata"] = {**body["metadata"], "name": "hostile"}
    body["metadata"].pop("generateName", None)
    await a.send("POST", JOBS, body)
    await _settle(a)
    await a.send("DELETE", f"{JOBS}/hostile?propagationPolicy=Background")
    await _settle(a)


JOB_ROWS: dict[str, Callable[[], dict[str, Any]]] = {
    "a gang of 200 with 16 x 32 selectors": lambda: job(200, gang=200, **from_template()),
    "200 pods with 16 x 32 selectors": lambda: job(200, **from_template()),
    "a gang of 20 with 16 x 32 selectors": lambda: job(20, gang=20, **from_template()),
    "a gang of 2^31-1 pods": lambda: job(2**31 - 1, gang=2**31 - 1),
    "a gang of 5,000 of 2^31-1 pods": lambda: job(2**31 - 1, gang=5_000),
    "2^31-1 pods in a queue": lambda: job(2**31 - 1, queue="hostile"),
    "200 pods with 16 x 32 selectors in a queue": lambda: job(
        200, queue="hostile", **from_template()
    ),
    "a gang of 2,000 that fits nowhere": lambda: job(
        2_000, gang=2_000, nodeSelector={"no": "where"}
    ),
}


def _job_row(made: Callable[[], dict[str, Any]]) -> Row:
    async def send(a: Attacker) -> None:
        await make_template(a, _costly())
        await _run_job(a, made())

    return send


for _name, _made_job in JOB_ROWS.items():
    row(_name, *GPUS)(_job_row(_made_job))


@row("200 Jobs in a queue, each with selectors of its own", *GPUS)
async def _(a: Attacker) -> None:
    for number in range(200):
        spec = claim_spec(
            *_selectors(mark=f"x{number}x"), requests=16, device_class="gpu.nvidia.com"
        )
        await make_template(a, spec, f"costly-{number}")
    await a.together(
        a.send("POST", JOBS, job(2, queue="hostile", **from_template(f"costly-{n}")))
        for n in range(200)
    )
    await asyncio.sleep(15)


@row("100 gangs of 20 with more devices than there are", *GPUS)
async def _(a: Attacker) -> None:
    await make_template(a, _costly())
    await a.together(a.send("POST", JOBS, job(20, gang=20, **from_template())) for _ in range(100))
    await _settle(a)


@row("a gang of 64 with devices on one root", *GPUS)
async def _(a: Attacker) -> None:
    """Every pod asks for four pairs of devices that share a root: a search with many dead ends."""
    requests = [
        {"name": f"r{n}", "exactly": {"deviceClassName": "gpu.nvidia.com"}} for n in range(8)
    ]
    constraints = [
        {"requests": [f"r{n}", f"r{n + 1}"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}
        for n in range(7)
    ]
    await make_template(a, {"devices": {"requests": requests, "constraints": constraints}})
    await _run_job(a, job(64, gang=64, **from_template()))


@row("a template that is replaced 100 times", *GPUS)
async def _(a: Attacker) -> None:
    await make_template(a, _costly())
    await a.send("POST", JOBS, job(50, gang=50, **from_template()))
    for number in range(100):
        await a.send("DELETE", f"{TEMPLATES}/costly")
        spec = claim_spec(
            *_selectors(mark=f"y{number}y"), requests=16, device_class="gpu.nvidia.com"
        )
        await make_template(a, spec)
    await asyncio.sleep(5)


@row("a group of 1,000 pods with 256 subgroups", *GPUS)
async def _(a: Attacker) -> None:
    groups = [{"name": f"s{n}", "minMember": 2} for n in range(256)]
    spec = {"minMember": 512, "subGroups": groups}
    group = {"apiVersion": KAI, "kind": "PodGroup", "metadata": {"name": "h"}, "spec": spec}
    await a.send("POST", KAI_GROUPS, group)
    for part in range(4):
        await a.together(
            a.send("POST", PODS, {
                "metadata": metadata(
                    annotations={"pod-group-name": "h"},
                    labels={"kai.scheduler/subgroup-name": f"s{n % 256}"},
                ),
                "spec": {"containers": [CONTAINER], "nodeSelector": {"no": "where"}},
            })
            for n in range(part * 250, part * 250 + 250)
        )  # fmt: skip
    await asyncio.sleep(5)
    await a.send("DELETE", PODS)
    await asyncio.sleep(3)


@row("a group of 2,000 pods in a queue", *GPUS)
async def _(a: Attacker) -> None:
    body = pod()
    body["metadata"]["labels"] = {
        "kueue.x-k8s.io/queue-name": "hostile",
        "kueue.x-k8s.io/pod-group-name": "h",
    }
    body["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "2000"}
    for _ in range(8):
        await a.together(a.send("POST", PODS, body) for _ in range(250))
    await asyncio.sleep(5)
    await a.send("DELETE", PODS)
    await asyncio.sleep(5)


@row("500 Jobs in a queue that are deleted at once", *GPUS)
async def _(a: Attacker) -> None:
    await make_template(a, _costly())
    for _ in range(5):
        await a.together(
            a.send("POST", JOBS, job(8, queue="hostile", **from_template())) for _ in range(100)
        )
    await asyncio.sleep(5)
    await a.send("DELETE", f"{JOBS}?propagationPolicy=Background")
    await asyncio.sleep(5)


# --- commands in containers --------------------------------------------------------------------------

NODE = ("--node",)
SESSIONS = 225


async def _running(a: Attacker, name: str, *command: str) -> None:
    """Create a pod whose container runs a program of this machine, and wait until it runs."""
    container = {"name": "c", "image": "host", "command": list(command)}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    await a.send("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    while True:
        async with a.client.get(f"{a.url}{PODS}/{name}") as answer:
            status = (await answer.json()).get("status") or {}
        if status.get("phase") == "Running":
            return
        await asyncio.sleep(0.1)


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _session(a: Attacker, name: str, *command: str, stdin: bool = False) -> Connection:
    """A command in a container. What it writes is read only as far as the answer to the request."""
    query = "".join(f"&command={quote(word, safe='')}" for word in command)
    flags = "&stdin=true" if stdin else ""
    reader, writer = await a.connect()
    writer.write(
        f"GET {PODS}/{name}/exec?stdout=true&stderr=true{flags}{query} HTTP/1.1\r\n"
        f"Host: x\r\nAuthorization: Bearer {a.token}\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    a.answers[head.split(b" ", 2)[1].decode()] += 1
    return reader, writer


async def _sessions(a: Attacker, *command: str, stdin: bool = False) -> list[Connection]:
    made = await asyncio.gather(
        *(_session(a, "shell", *command, stdin=stdin) for _ in range(SESSIONS)),
        return_exceptions=True,
    )
    a.answers.update(type(each).__name__ for each in made if isinstance(each, BaseException))
    return [each for each in made if not isinstance(each, BaseException)]


def _abort(connections: Iterable[Connection]) -> None:
    for _, writer in connections:
        writer.transport.abort()


@row("225 commands that write and are not read, 8 times", *NODE)
async def _(a: Attacker) -> None:
    await _running(a, "shell", "sleep", "600")
    for _ in range(8):
        connections = await _sessions(a, "cat", "/dev/zero")
        await asyncio.sleep(1)
        _abort(connections)
        await asyncio.sleep(0.5)


@row("225 commands by SPDY that write and are not read, 4 times", *NODE)
async def _(a: Attacker) -> None:
    await _running(a, "shell", "sleep", "600")
    for _ in range(4):
        connections = await asyncio.gather(*(_spdy_session(a) for _ in range(SESSIONS)))
        await asyncio.sleep(1)
        _abort(connections)
        await asyncio.sleep(0.5)


async def _spdy_session(a: Attacker) -> Connection:
    reader, writer = await a.connect()
    writer.write(
        f"POST {PODS}/shell/exec?stdout=true&stderr=true&command=cat&command=/dev/zero HTTP/1.1\r\n"
        f"Host: x\r\nAuthorization: Bearer {a.token}\r\nConnection: Upgrade\r\n"
        "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n"
        "Content-Length: 0\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    a.answers[head.split(b" ", 2)[1].decode()] += 1
    streams = Session(is_client=True)
    for name in ("error", "stdout", "stderr"):
        streams.open({"streamtype": name})
    writer.write(streams.take())
    return reader, writer


@row("225 idle commands that are closed at once", *NODE)
async def _(a: Attacker) -> None:
    await _running(a, "shell", "sleep", "600")
    connections = await _sessions(a, "sleep", "600")
    await asyncio.sleep(2)
    _abort(connections)
    await asyncio.sleep(3)


@row("225 commands that end at once", *NODE)
async def _(a: Attacker) -> None:
    await _running(a, "shell", "sleep", "600")
    for _ in range(4):
        connections = await _sessions(a, "true")
        await asyncio.sleep(1)
        _abort(connections)


@row("225 commands that do not read what is sent", *NODE)
async def _(a: Attacker) -> None:
    await _running(a, "shell", "sleep", "600")
    connections = await _sessions(a, "sleep", "600", stdin=True)
    frame = b"\x82\xff" + (1 << 16).to_bytes(8, "big") + bytes(4) + bytes(1 << 16)
    for _ in range(32):
        for _, writer in connections:
            if writer.transport.get_write_buffer_size() < 1 << 17:
                writer.write(frame)
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)
    _abort(connections)
    await asyncio.sleep(3)


@row("225 logs that are followed and not read", *NODE)
async def _(a: Attacker) -> None:
    await _running(a, "shell", "sh", "-c", "while :; do head -c 100000 /dev/zero; sleep 0.1; done")
    connections = [await a.connect() for _ in range(SESSIONS)]
    for _, writer in connections:
        writer.write(
            f"GET {PODS}/shell/log?follow=true HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {a.token}\r\n\r\n".encode()
        )
    await asyncio.sleep(5)
    _abort(connections)
    await asyncio.sleep(2)


@row("500 simulated commands, 4 times", *GPUS)
async def _(a: Attacker) -> None:
    await a.send("POST", PODS, {"metadata": {"name": "shell"}, "spec": {"containers": [CONTAINER]}})
    await asyncio.sleep(1)
    for _ in range(4):
        connections = await _sessions(a, "sh")
        connections += await _sessions(a, "nvidia-smi")
        await asyncio.sleep(1)
        _abort(connections)
        await asyncio.sleep(0.5)
