"""Looks for growth in what a server does besides the fields of built-in kinds: custom resources, rights, selectors, pages.

For a process of its own. Prints a line for each place that grows too fast, and then how many scenes were played.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from growth.metering import meter_package

METER = meter_package("drayman")
sys.setrecursionlimit(10_000)
"""Counting takes a frame for each call."""

from drayman.apiserver.protocol import errors  # noqa: E402
from growth.comparing import steep  # noqa: E402
from growth.requesting import APPLY, FORMS, JSON_PATCH, MERGE, Served, served  # noqa: E402

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
ITEMS = 24 if IS_LONG else 12
errors.MOST_ERROR_TEXT = 0
"""Only the first error is shown: what is left out beyond the limit must not grow either."""
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
TEXT = {"type": "string"}

Object = dict[str, Any]
Scene = Callable[[Served, int], Awaitable[None]]


def keyed(**more: Any) -> Object:
    """A list of objects that are identified by their name."""
    item = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": TEXT, "size": {"type": "integer", "default": 1}, **more},
    }
    return {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}  # fmt: skip


def listed(item: Object, **more: Any) -> Object:
    return {"type": "array", "items": {**TEXT, **item}, **more}


def items(count: int) -> list[Object]:
    return [{"name": f"n{number}", "unknown": number} for number in range(count)]


def texts(count: int) -> list[str]:
    return [f"v{number}" for number in range(count)]


def rule(text: str) -> Object:
    return {"maxItems": 4000, "x-kubernetes-validations": [{"rule": text}]}


SCHEMAS: dict[str, tuple[Object, Callable[[int], Any]]] = {
    "a list": (listed({}), texts),
    "a list of one item again and again": (listed({}), lambda count: ["v"] * count),
    "a set": (listed({}, **{"x-kubernetes-list-type": "set"}), texts),
    "a set with duplicates": (listed({}, **{"x-kubernetes-list-type": "set"}), lambda n: ["v"] * n),
    "a list with keys": (keyed(), items),
    "a list with keys that are the same": (keyed(), lambda count: [{"name": "n"}] * count),
    "a list in a list": (
        keyed(inner=keyed()),
        lambda count: [{"name": "n", "inner": items(count)}],
    ),
    "a map": (
        {"type": "object", "additionalProperties": TEXT},
        lambda count: {f"k{number}": "v" for number in range(count)},
    ),
    "items of the wrong type": (listed({}), lambda count: list(range(count))),
    "unique items": (listed({}, uniqueItems=False, maxItems=3), texts),
    "an enumeration": (listed({"enum": ["a", "b"]}), texts),
    "a pattern": (listed({"pattern": "^w+$"}), texts),
    "a format": (listed({"format": "date-time"}), texts),
    "anyOf": (listed({"anyOf": [{"minLength": 9}, {"maxLength": 1}]}), texts),
    "oneOf": (listed({"oneOf": [{"minLength": 1}, {"maxLength": 9}]}), texts),
    "not": (listed({"not": {"minLength": 1}}), texts),
    "allOf": (listed({"allOf": [{"minLength": 9}, {"maxLength": 1}]}), texts),
    "members without a schema": (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        lambda count: {f"k{number}": {"a": [1]} for number in range(count)},
    ),
    "a rule for each item": (
        listed(
            {"maxLength": 9, "x-kubernetes-validations": [{"rule": "self.size() > 9"}]},
            maxItems=4000,
        ),
        texts,
    ),
    "a rule for all items": (listed({"maxLength": 9}, **rule("self.all(x, x.size() > 0)")), texts),
    "a rule about before": (
        listed({"maxLength": 9}, **rule("self.size() >= oldSelf.size()")),
        texts,
    ),
}


def definition(spec: Object, **version: Any) -> Object:
    schema = {"type": "object", "properties": {"spec": spec}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    whole = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}  # fmt: skip
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [whole],
        },
    }


async def must(target: Served, method: str, path: str, body: Any = b"", **query: str) -> Object:
    answer = await target.send(method, path, body, **query)
    assert answer.status < 300, (path, answer.body)
    found: Object = msgspec.json.decode(answer.body)
    return found


async def define(target: Served, spec: Object, **version: Any) -> None:
    await must(target, "POST", DEFINITIONS, definition(spec, **version))
    for _ in range(200):
        found = await must(target, "GET", f"{DEFINITIONS}/widgets.example.com")
        if any(c["type"] == "Established" for c in found["status"].get("conditions", ())):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the definition is not established")


async def written(target: Served, value: Any) -> None:
    """Everything that can be done with a custom resource."""
    obj = {**WIDGET, "spec": value}
    turned = {
        **WIDGET,
        "spec": dict(reversed(value.items())) if isinstance(value, dict) else value[::-1],
    }
    path = f"{WIDGETS}/w"
    await target.send("POST", WIDGETS, obj)
    await target.send("PUT", path, turned)
    await target.send("PATCH", path, {"spec": value}, MERGE)
    await target.send("PATCH", path, [{"op": "test", "path": "/spec", "value": value}], JSON_PATCH)
    for manager, applied in (("a", obj), ("a", obj), ("a", turned), ("b", obj), ("a", WIDGET)):
        await target.send("PATCH", path, applied, APPLY, fieldManager=manager, force="true")
    for form in FORMS:
        await target.send("GET", path, accept=form)
    await target.send("DELETE", path)


def custom(name: str) -> Scene:
    spec, values = SCHEMAS[name]

    async def scene(target: Served, count: int) -> None:
        await define(target, spec)
        METER.reset()
        await written(target, values(count))

    return scene


async def properties(target: Served, count: int) -> None:
    names = {f"p{number}": {**TEXT, "default": "d"} for number in range(count)}
    await define(target, {"type": "object", "properties": names, "required": list(names)})
    await written(target, {f"p{number}": "v" for number in range(count)})
    await written(target, {})


async def choices(target: Served, count: int) -> None:
    """As many values as choices, and none of them is one."""
    await define(target, listed({"enum": [f"choice{number}" for number in range(count)]}))
    await written(target, texts(count))


async def alternatives(target: Served, count: int) -> None:
    some = [{"pattern": f"^{number}$"} for number in range(count)]
    await define(target, {**TEXT, "anyOf": some, "oneOf": some, "allOf": some})
    await written(target, {"a": "b"})
    await target.send("POST", WIDGETS, {**WIDGET, "spec": "b"})


async def rules(target: Served, count: int) -> None:
    some = [{"rule": f"self.size() > {number}"} for number in range(count)]
    await define(target, {**TEXT, "maxLength": 5, "x-kubernetes-validations": some})
    await target.send("POST", WIDGETS, {**WIDGET, "spec": "b"})


async def columns(target: Served, count: int) -> None:
    some = [{"name": f"c{n}", "type": "string", "jsonPath": f".spec.p{n}"} for n in range(count)]
    names = {f"p{number}": TEXT for number in range(count)}
    await define(target, {"type": "object", "properties": names}, additionalPrinterColumns=some)
    await written(target, {f"p{number}": "v" for number in range(count)})


async def as_user(
    target: Served, user: str, method: str, path: str, body: Any = b"", groups: int = 0
) -> int:
    """Something that a user does who has rights by RBAC alone."""
    review = {"user": user, "groups": [f"g{number}" for number in range(groups)]}
    place = {"verb": "get", "resource": "configmaps", "namespace": "default", "name": "x"}
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    await must(target, "POST", reviews, {"spec": {**review, "resourceAttributes": place}})
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    await must(target, "POST", reviews, {"spec": {"namespace": "default"}})
    headers = {"impersonate-user": user}
    return (await target.send(method, path, body, headers=headers)).status


def role(name: str, rules_: list[Object]) -> Object:
    return {"metadata": {"name": name}, "rules": rules_}


def grant(resource: str, *verbs: str) -> Object:
    return {"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}


def binding(name: str, role_name: str, subjects: list[Object]) -> Object:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role_name}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}


def user(name: str, kind: str = "User") -> Object:
    return {"kind": kind, "apiGroup": "rbac.authorization.k8s.io", "name": name}


async def rules_of_a_role(target: Served, count: int) -> None:
    """A user with many rules grants as many to another one."""
    some = [grant(f"r{number}", "get") for number in range(count)]
    may = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create"]}
    await must(target, "POST", f"{RBAC}/clusterroles", role("many", [*some, may]))
    await must(target, "POST", f"{RBAC}/clusterrolebindings", binding("b", "many", [user("u")]))
    path = f"{RBAC}/clusterroles"
    assert await as_user(target, "u", "POST", path, role("copy", some)) == 201
    assert await as_user(target, "u", "POST", path, role("more", [*some, grant("x", "get")])) == 403
    new = binding("c", "copy", [user("v")])
    assert await as_user(target, "u", "POST", f"{RBAC}/clusterrolebindings", new) == 201


async def names_in_a_rule(target: Served, count: int) -> None:
    some = [{**grant("configmaps", "get"), "resourceNames": texts(count)}]
    may = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create"]}
    await must(target, "POST", f"{RBAC}/clusterroles", role("many", [*some, may]))
    await must(target, "POST", f"{RBAC}/clusterrolebindings", binding("b", "many", [user("u")]))
    assert await as_user(target, "u", "POST", f"{RBAC}/clusterroles", role("copy", some)) == 201


async def bindings(target: Served, count: int) -> None:
    for number in range(count):
        new = binding(f"b{number}", "view", [user(f"u{number}")])
        await must(target, "POST", f"{RBAC}/namespaces/default/rolebindings", new)
    METER.reset()
    assert await as_user(target, f"u{count - 1}", "GET", CONFIG_MAPS) == 200


async def subjects(target: Served, count: int) -> None:
    """A user in many groups, and a binding to as many others."""
    some = [user(f"h{number}", "Group") for number in range(count)]
    await must(target, "POST", f"{RBAC}/clusterrolebindings", binding("b", "view", some))
    assert await as_user(target, "u", "GET", CONFIG_MAPS, groups=count) == 403


async def config_maps(target: Served, count: int) -> None:
    for number in range(count):
        labels = {"a": f"v{number}", "b": "c"}
        await must(
            target, "POST", CONFIG_MAPS, {"metadata": {"name": f"c{number}", "labels": labels}}
        )


async def selectors(target: Served, count: int) -> None:
    await config_maps(target, 3)
    labels = ",".join(f"k{number}!=v" for number in range(count))
    values = f"a in ({','.join(texts(count))})"
    fields = ",".join(f"metadata.name!=x{number}" for number in range(count))
    for query in ({"labelSelector": labels}, {"labelSelector": values}, {"fieldSelector": fields}):
        await must(target, "GET", CONFIG_MAPS, **query)


async def selected(target: Served, count: int) -> None:
    await config_maps(target, count)
    METER.reset()
    for form in FORMS:
        await target.send("GET", CONFIG_MAPS, accept=form, labelSelector="b=c,a!=v1", fieldSelector="metadata.name!=c0")  # fmt: skip
    await must(target, "DELETE", CONFIG_MAPS, labelSelector="b=c")


async def definitions(target: Served, count: int) -> None:
    """Many custom kinds, and what clients ask about all of them."""
    for number in range(count):
        whole = definition(TEXT)
        whole["metadata"]["name"] = f"w{number}s.example.com"
        kind = f"W{number}"
        names = {
            "plural": f"w{number}s",
            "singular": f"w{number}",
            "kind": kind,
            "listKind": f"{kind}List",
        }
        whole["spec"]["names"] = names
        await must(target, "POST", DEFINITIONS, whole)
    await asyncio.sleep(0.3)
    METER.reset()
    for path in ("/apis", "/apis/example.com/v1", "/openapi/v2", "/openapi/v3/apis/example.com/v1"):
        await target.send("GET", path)


async def limits(target: Served, count: int) -> None:
    """Limits for as many resources as containers ask for."""
    amounts = {f"example.com/r{number}": "1" for number in range(count)}
    limit = {"type": "Container", "max": amounts, "default": amounts}
    path = "/api/v1/namespaces/default/limitranges"
    await must(target, "POST", path, {"metadata": {"name": "l"}, "spec": {"limits": [limit]}})
    containers = [{"name": "c", "image": "i", "resources": {"limits": amounts}}]
    await must(
        target, "POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": containers}}
    )


async def duplicate_keys(target: Served, count: int) -> None:
    members = ",".join('"a":"b"' for _ in range(count))
    body = f'{{"metadata":{{"name":"c","annotations":{{{members}}}}},"data":{{{members}}}}}'
    await target.send("POST", CONFIG_MAPS, body.encode())
    await target.send("PATCH", f"{CONFIG_MAPS}/c", body.encode(), MERGE)
    await target.send("PATCH", f"{CONFIG_MAPS}/c", body.encode(), APPLY, fieldManager="m")


async def managers(target: Served, count: int) -> None:
    """Many managers of one object, each of whom has applied a part of it."""
    for number in range(count):
        whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {f"k{number}": "v"}}  # fmt: skip
        await must(
            target, "PATCH", f"{CONFIG_MAPS}/c", whole, media=APPLY, fieldManager=f"m{number}"
        )
    METER.reset()
    whole["data"] = {f"k{number}": "w" for number in range(count)}
    await target.send("PATCH", f"{CONFIG_MAPS}/c", whole, APPLY, fieldManager="m0")
    await target.send("PATCH", f"{CONFIG_MAPS}/c", whole, APPLY, fieldManager="m0", force="true")
    await target.send("PUT", f"{CONFIG_MAPS}/c", whole)


SCENES: dict[str, Scene] = {
    **{f"custom resource: {name}": custom(name) for name in SCHEMAS},
    **{
        scene.__name__: scene
        for scene in (
            properties, choices, alternatives, rules, columns, rules_of_a_role, names_in_a_rule, bindings, subjects, selectors,
            selected, definitions, limits, duplicate_keys, managers,
        )
    },
}  # fmt: skip


async def played(scene: Scene, count: int) -> None:
    async with served() as target:
        METER.reset()
        await scene(target, count)


async def main(names: list[str]) -> None:
    for name in names or list(SCENES):
        work = partial(played, SCENES[name])
        for growth in await steep(METER, work, ITEMS):
            sys.stdout.write(f"{name}: {growth}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(SCENES)} scenes\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
