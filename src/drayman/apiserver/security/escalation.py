"""Nobody gives away more than they have: the rules for writing roles and bindings, with the texts of Kubernetes.

A role may be written by users who have every permission in it, or the right to `escalate` it. A role may be bound by users who
have every permission in it, or the right to `bind` it. An aggregated role gathers whatever others will grant, so only users
with all rights may write one. Members of system:masters may do all of this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from drayman.api.struct import Json
from drayman.api.syntax.json_scanner import quoted
from drayman.apiserver.kinds.access_control import GROUP
from drayman.apiserver.protocol.access import EVERYTHING, MASTERS, Attributes
from drayman.apiserver.protocol.errors import Subject, forbidden, not_found
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.security.permissions import (
    MOST_PERMISSIONS,
    TooManyPermissions,
    describe_permissions,
    missing_permissions,
    quoted_list,
)
from drayman.apiserver.security.rbac import referenced_role
from drayman.apiserver.served.resources import Guard, Resources
from drayman.apiserver.served.strategy import Object

_AGGREGATING: Final = "must have cluster-admin privileges to use the aggregationRule"
_COLLECTED: Final = ("ownerReferences", "finalizers", "managedFields", "selfLink")
"""Metadata that the garbage collector changes. It does not need the permissions of the roles it collects."""


def guard_roles(resources: Resources) -> None:
    """Put the rules into the table of resources."""
    guards: dict[str, Guard] = {
        "roles": _check_role,
        "clusterroles": _check_role,
        "rolebindings": _check_binding,
        "clusterrolebindings": _check_binding,
    }
    for plural, guard in guards.items():
        resource = resources.named(GROUP, plural)
        if resource is not None:
            resources.add(replace(resource, guard=guard))


def _check_role(call: Call, new: Object, old: Object | None) -> None:
    if _is_exempt(call, new, old):
        return
    wanted = Attributes(
        "escalate", GROUP, call.version, call.resource.plural, "", call.namespace, call.name
    )
    if call.core.authorizer.authorize(call.user, wanted).allowed:
        return
    _check_grant(call, new, new.get("rules") or ())
    is_aggregated = _is_aggregated(new) or (old is not None and _is_aggregated(old))
    if is_aggregated and _missing(call, EVERYTHING):
        raise forbidden(_subject(call, new), _AGGREGATING)


def _check_binding(call: Call, new: Object, old: Object | None) -> None:
    if _is_exempt(call, new, old):
        return
    reference = new.get("roleRef") or {}
    plural = {"ClusterRole": "clusterroles", "Role": "roles"}.get(reference.get("kind", ""))
    if plural is None:
        return  # Validation refuses it.
    group, name = reference.get("apiGroup", ""), reference.get("name", "")
    wanted = Attributes("bind", group, "*", plural, "", call.namespace, name)
    if call.core.authorizer.authorize(call.user, wanted).allowed:
        return
    role = referenced_role(call.core.objects, {**reference, "name": name}, call.namespace)
    if role is None:
        raise not_found(Subject(plural, GROUP, name))
    _check_grant(call, new, role.get("rules") or ())


def _is_exempt(call: Call, new: Object, old: Object | None) -> bool:
    return MASTERS in call.user.groups or (old is not None and _is_collection(new, old))


def _is_collection(new: Object, old: Object) -> bool:
    """Whether an update changes only what the garbage collector does."""
    metadata = {**new["metadata"]}
    for name in _COLLECTED:
        metadata.pop(name, None)
        if name in old["metadata"]:
            metadata[name] = old["metadata"][name]
    return {**new, "metadata": metadata} == old


def _is_aggregated(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _missing(call: Call, rules: Iterable[Object]) -> list[str]:
    """What the user lacks of the permissions in some rules. Raises TooManyPermissions."""
    grants = call.core.authorizer.grants(call.user, call.namespace)
    return describe_permissions(missing_permissions((grant.rule for grant in grants), rules))


def _check_grant(call: Call, obj: Object, rules: Json) -> None:
    """Refuse to grant what the user does not have. Raises StatusError 403."""
    who = f"user {quoted(call.user.name)} (groups={quoted_list(call.user.groups)})"
    try:
        missing = _missing(call, rules)
    except TooManyPermissions:
        why = f"is attempting to grant more than {MOST_PERMISSIONS} RBAC permissions at once"
        raise forbidden(_subject(call, obj), f"{who} {why}") from None
    if missing:
        why = "is attempting to grant RBAC permissions not currently held:\n" + "\n".join(missing)
        raise forbidden(_subject(call, obj), f"{who} {why}")


def _subject(call: Call, obj: Object) -> Subject:
    return call.resource.subject(obj["metadata"].get("name", ""))
