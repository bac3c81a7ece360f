"""Roles and their bindings as objects. The authorizer decides what they allow."""

from __future__ import annotations

from typing import Final

from drayman.api.formats import path_segment_problems
from drayman.api.validation.field_errors import invalid, not_supported, required
from drayman.api.validation.names import dns_subdomain
from drayman.apiserver.kinds.checks import label_selector
from drayman.apiserver.kinds.reading import (
    at,
    each_at,
    items_at,
    map_at,
    member,
    set_default,
    text_at,
)
from drayman.apiserver.kinds.rules import Errors, Rules
from drayman.apiserver.served.strategy import Context, Object

GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def _check_rules(obj: Object, *, namespaced: bool) -> Errors:
    for where, rule in each_at(obj, "", "rules"):
        if not items_at(rule, "verbs"):
            yield required(f"{where}.verbs", "verbs must contain at least one value")
        if items_at(rule, "nonResourceURLs"):
            if namespaced:
                detail = "namespaced rules cannot apply to non-resource URLs"
                yield invalid(f"{where}.nonResourceURLs", rule["nonResourceURLs"], detail)
            if any(items_at(rule, name) for name in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid(f"{where}.nonResourceURLs", rule["nonResourceURLs"], detail)
            continue
        if not items_at(rule, "apiGroups"):
            yield required(
                f"{where}.apiGroups", "resource rules must supply at least one api group"
            )
        if not items_at(rule, "resources"):
            yield required(f"{where}.resources", "resource rules must supply at least one resource")


def _check_cluster_role(obj: Object, _context: Context) -> Errors:
    yield from _check_rules(obj, namespaced=False)
    if obj.get("aggregationRule") is not None:
        path = "aggregationRule.clusterRoleSelectors"
        selectors = items_at(obj, "aggregationRule", "clusterRoleSelectors")
        if not selectors:
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            yield required(path, detail)
        for index, selector in enumerate(selectors):
            yield from label_selector(selector, f"{path}[{index}]")


def _default_binding(obj: Object, _context: Context) -> None:
    set_default(member(obj, "roleRef"), "apiGroup", GROUP)
    for _, subject in each_at(obj, "", "subjects"):
        if subject.get("kind") in ("User", "Group"):
            set_default(subject, "apiGroup", GROUP)


def _check_binding(obj: Object, choices: tuple[str, ...], *, namespaced: bool) -> Errors:
    role = map_at(obj, "roleRef")
    if role.get("apiGroup") != GROUP:
        yield not_supported("roleRef.apiGroup", role.get("apiGroup"), (GROUP,))
    if role.get("kind", "") not in choices:
        yield not_supported("roleRef.kind", role.get("kind", ""), choices)
    if not text_at(role, "name"):
        yield required("roleRef.name")
    for where, subject in each_at(obj, "", "subjects"):
        yield from _subject(subject, where, namespaced=namespaced)


def _subject(subject: Object, path: str, *, namespaced: bool) -> Errors:
    if not text_at(subject, "name"):
        yield required(f"{path}.name")
    kind, group = text_at(subject, "kind"), text_at(subject, "apiGroup")
    if kind not in _SUBJECTS:
        yield not_supported(f"{path}.kind", kind, _SUBJECTS)
        return
    name = text_at(subject, "name")
    if kind == "ServiceAccount" and name:
        yield from dns_subdomain(name, f"{path}.name")
    wanted = "" if kind == "ServiceAccount" else GROUP
    if group != wanted:
        yield not_supported(f"{path}.apiGroup", group, (wanted,))
    if kind == "ServiceAccount" and not namespaced and not text_at(subject, "namespace"):
        yield required(f"{path}.namespace")


def _check_binding_update(new: Object, old: Object, _context: Context) -> Errors:
    if new.get("roleRef") != old.get("roleRef"):
        yield invalid("roleRef", new.get("roleRef"), "cannot change roleRef")


def subject_names(obj: Object, kind: str) -> str:
    """Names of the subjects of a kind, for a table."""
    found = []
    for subject in items_at(obj, "subjects"):
        if text_at(subject, "kind") == kind:
            namespace = text_at(subject, "namespace") if kind == "ServiceAccount" else ""
            name = text_at(subject, "name")
            found.append(f"{namespace}/{name}" if namespace else name)
    return ", ".join(found)


def role_of(obj: Object) -> str:
    return f"{text_at(obj, 'roleRef', 'kind')}/{at(obj, 'roleRef', 'name') or ''}"


ROLE: Final = Rules(
    name_problems=path_segment_problems,
    checks=lambda obj, _context: _check_rules(obj, namespaced=True),
)
CLUSTER_ROLE: Final = Rules(
    namespaced=False, name_problems=path_segment_problems, checks=_check_cluster_role
)
ROLE_BINDING: Final = Rules(
    name_problems=path_segment_problems,
    defaults=_default_binding,
    checks=lambda obj, _context: _check_binding(obj, ("Role", "ClusterRole"), namespaced=True),
    update_checks=_check_binding_update,
)
CLUSTER_ROLE_BINDING: Final = Rules(
    namespaced=False,
    name_problems=path_segment_problems,
    defaults=_default_binding,
    checks=lambda obj, _context: _check_binding(obj, ("ClusterRole",), namespaced=False),
    update_checks=_check_binding_update,
)
