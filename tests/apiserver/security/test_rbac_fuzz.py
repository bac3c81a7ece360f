"""Random roles, bindings, users and requests: the server decides as a naive reading of Kubernetes' rules does.

The naive reading goes through every binding and every combination of words, one after the other. It shares no code with the server.
"""

from __future__ import annotations

import os
import random
from typing import Any

from security.test_rbac import Kept, authorizer_of, binding, role

from drayman.apiserver.protocol.access import Attributes, User
from drayman.apiserver.security.permissions import missing_permissions
from drayman.apiserver.security.rbac import covers

CASES = 100_000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 10_000
PER_WORLD = 50

VERBS = ["get", "list", "create", "bind", "*"]
GROUPS = ["", "apps", "resource.k8s.io", "*"]
RESOURCES = ["pods", "pods/log", "deployments/scale", "*/scale", "*/*", "claims", "*"]
NAMES = ["a", "b", "*"]
PATHS = ["/healthz", "/metrics", "/metrics/*", "/m*", "*", "/metrics/a"]
NAMESPACES = ["n1", "n2"]
USERS = ["ann", "bob", "system:serviceaccount:n1:bot", "system:serviceaccount:n2:bot"]
TEAMS = ["dev", "ops", "system:authenticated"]


def some(rng: random.Random, words: list[str], least: int = 1) -> list[str]:
    return rng.sample(words, rng.randint(least, min(3, len(words))))


def random_rule(rng: random.Random, *, paths: bool) -> dict[str, Any]:
    if paths and rng.random() < 0.2:
        return {"nonResourceURLs": some(rng, PATHS), "verbs": some(rng, VERBS)}
    made: dict[str, Any] = {
        "apiGroups": some(rng, GROUPS),
        "resources": some(rng, RESOURCES),
        "verbs": some(rng, VERBS),
    }
    if rng.random() < 0.3:
        made["resourceNames"] = some(rng, NAMES)
    return made


def random_subject(rng: random.Random) -> dict[str, str]:
    match rng.choice(["User", "Group", "ServiceAccount", "Robot"]):
        case "ServiceAccount":
            where = rng.choice([{}, {"namespace": rng.choice(NAMESPACES)}])
            return {"kind": "ServiceAccount", "name": "bot", **where}
        case "Group":
            return {"kind": "Group", "name": rng.choice(TEAMS)}
        case kind:
            return {"kind": kind, "name": rng.choice(USERS)}


def random_world(rng: random.Random) -> list[dict[str, Any]]:
    objects = []
    for name in ("r1", "r2", "r3"):
        rules = [random_rule(rng, paths=True) for _ in range(rng.randint(0, 3))]
        objects.append(role("ClusterRole", name, *rules))
        for namespace in NAMESPACES:
            rules = [random_rule(rng, paths=False) for _ in range(rng.randint(0, 2))]
            objects.append(role("Role", name, *rules, namespace=namespace))
    for number in range(rng.randint(0, 12)):
        made = rng.choice(["r1", "r2", "r3", "gone"])
        subject = random_subject(rng)
        if rng.random() < 0.4:
            reference = ("ClusterRole", made)
            objects.append(binding("ClusterRoleBinding", f"b{number}", reference, subject))
        else:
            reference = (rng.choice(["Role", "ClusterRole"]), made)
            where = rng.choice(NAMESPACES)
            objects.append(binding("RoleBinding", f"b{number}", reference, subject, where))
    return objects


def random_user(rng: random.Random) -> User:
    return User(rng.choice(USERS), groups=tuple(some(rng, TEAMS, 0)))


def random_request(rng: random.Random) -> Attributes:
    verb = rng.choice(["get", "list", "create", "bind", "delete"])
    if rng.random() < 0.2:
        return Attributes(verb, path=rng.choice(["/healthz", "/metrics", "/metrics/a/b", "/x"]))
    resource, _, part = rng.choice(["pods", "pods/log", "deployments/scale", "claims"]).partition(
        "/"
    )
    group = rng.choice(["", "apps", "resource.k8s.io", "other"])
    namespace, name = rng.choice(["", *NAMESPACES]), rng.choice(["", "a", "b", "c"])
    return Attributes(verb, group, "v1", resource, part, namespace, name)


def naively_allowed(objects: list[dict[str, Any]], user: User, asked: Attributes) -> bool:
    """Kubernetes' documentation, step by step."""
    for bound in objects:
        if not bound["kind"].endswith("Binding"):
            continue
        where = bound["metadata"]["namespace"]
        if where and where != asked.namespace:
            continue
        if not any(naively_meant(subject, user, where) for subject in bound["subjects"]):
            continue
        for found in objects:
            reference = bound["roleRef"]
            if (found["kind"], found["metadata"]["name"]) != (reference["kind"], reference["name"]):
                continue
            if found["kind"] == "Role" and found["metadata"]["namespace"] != where:
                continue
            if any(naively_covered(one, asked) for one in found["rules"]):
                return True
    return False


def naively_meant(subject: dict[str, str], user: User, where: str) -> bool:
    if subject["kind"] == "User":
        return subject["name"] == user.name
    if subject["kind"] == "Group":
        return subject["name"] in list(user.groups)
    if subject["kind"] == "ServiceAccount":
        namespace = subject.get("namespace", where)
        return ["system", "serviceaccount", namespace, subject["name"]] == user.name.split(":")
    return False


def naively_covered(one: dict[str, Any], asked: Attributes) -> bool:
    for verb in one["verbs"]:
        if verb not in (asked.verb, "*"):
            continue
        if not asked.resource:
            for path in one.get("nonResourceURLs", []):
                if path in ("*", asked.path):
                    return True
                if path[-1] == "*" and asked.path[: len(path) - 1] == path[:-1]:
                    return True
            continue
        for group in one.get("apiGroups", []):
            for resource in one.get("resources", []):
                if group in (asked.group, "*") and naively_named(resource, asked):
                    names = one.get("resourceNames", [])
                    if names == [] or asked.name in names:
                        return True
    return False


def naively_named(resource: str, asked: Attributes) -> bool:
    if resource == "*":
        return True
    if not asked.subresource:
        return resource == asked.resource
    return resource in (f"{asked.resource}/{asked.subresource}", f"*/{asked.subresource}")


def test_the_server_decides_as_the_documents_say() -> None:
    """Over random clusters, users and requests."""
    allowed = 0
    for seed in range(CASES // PER_WORLD):
        rng = random.Random(seed)
        objects = random_world(rng)
        authorizer = authorizer_of(Kept(objects))
        for _ in range(PER_WORLD):
            user, asked = random_user(rng), random_request(rng)
            want = naively_allowed(objects, user, asked)
            assert authorizer.authorize(user, asked).allowed is want, (seed, user, asked)
            allowed += want
    assert CASES // 20 < allowed < CASES // 2, "both answers occur often"


def naively_missing(
    owned: list[dict[str, Any]], granted: list[dict[str, Any]]
) -> set[tuple[str, ...]]:
    """Each combination of words in the granted rules that no owned rule has all words of."""
    missing = set()
    for one in granted:
        for verb in one["verbs"]:
            for path in one.get("nonResourceURLs", []):
                if not any(naively_holds_path(own, verb, path) for own in owned):
                    missing.add((verb, path))
            for group in one.get("apiGroups", []):
                for resource in one.get("resources", []):
                    for name in one.get("resourceNames", [""]):
                        if not any(naively_holds(o, verb, group, resource, name) for o in owned):
                            missing.add((verb, group, resource, name))
    return missing


def naively_holds_path(own: dict[str, Any], verb: str, path: str) -> bool:
    if verb not in own["verbs"] and "*" not in own["verbs"]:
        return False
    for pattern in own.get("nonResourceURLs", []):
        if pattern == path or (pattern[-1] == "*" and path.startswith(pattern[:-1])):
            return True
    return False


def naively_holds(own: dict[str, Any], verb: str, group: str, resource: str, name: str) -> bool:
    groups, resources = own.get("apiGroups", []), own.get("resources", [])
    if verb not in own["verbs"] and "*" not in own["verbs"]:
        return False
    if group not in groups and "*" not in groups:
        return False
    has_resource = resource in resources or "*" in resources
    if "/" in resource and f"*/{resource.split('/')[1]}" in resources:
        has_resource = True
    names = own.get("resourceNames", [])
    return has_resource and (names == [] or (name != "" and name in names))


def random_rules(rng: random.Random, most: int) -> list[dict[str, Any]]:
    return [random_rule(rng, paths=True) for _ in range(rng.randint(0, most))]


def test_missing_permissions_are_those_no_rule_has() -> None:
    """Whole rules are compared first, which must not change the outcome."""
    covered = 0
    for seed in range(CASES):
        rng = random.Random(seed)
        owned, granted = random_rules(rng, 4), random_rules(rng, 2)
        found = {
            (p.verb, p.path) if p.path is not None else (p.verb, p.group, p.resource, p.name or "")
            for p in missing_permissions(owned, granted)
        }
        assert found == naively_missing(owned, granted), seed
        covered += not found and bool(granted)
    assert covered > CASES // 100, "rules that are covered occur"


def test_what_may_be_granted_allows_nothing_new() -> None:
    """If no permission is missing, no request is allowed by the granted rules that the owned ones refuse."""
    for seed in range(CASES):
        rng = random.Random(seed)
        owned, granted = random_rules(rng, 4), random_rules(rng, 1)
        if missing_permissions(owned, granted):
            continue
        asked = random_request(rng)
        if any(covers(one, asked) for one in granted):
            assert any(covers(one, asked) for one in owned), (seed, asked)
