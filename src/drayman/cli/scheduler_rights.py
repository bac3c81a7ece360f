"""The rights of `drayman scheduler`: as a manifest that grants them, and checked with the cluster before it begins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from drayman.cli.errors import UserError
from drayman.placement.schedulers import OWN_SCHEDULER
from drayman.scheduler.leading import LEASE_NAMESPACE, lease_of
from drayman.scheduler.rights import RIGHTS, Right, leading

if TYPE_CHECKING:
    from drayman.cluster import HttpClient

_log: Final = logging.getLogger(__name__)

NAME: Final = "drayman-scheduler"
_GROUP: Final = "rbac.authorization.k8s.io"
_VERSION: Final = f"{_GROUP}/v1"


def manifest(names: Iterable[str]) -> list[dict[str, Any]]:
    """A service account, and roles with exactly the rights of a scheduler that serves these names, bound to it.

    Each name has a role for its lease, so that granting another name later takes nothing away.
    """
    where = {"namespace": LEASE_NAMESPACE}
    subjects = [{"kind": "ServiceAccount", "name": NAME, **where}]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, **where}}
    documents = [
        account,
        _role("ClusterRole", {"name": NAME}, RIGHTS),
        _binding("ClusterRole", {"name": NAME}, subjects),
    ]
    for name in sorted(set(names)):
        role = {"name": lease_of(name), **where}
        documents += [_role("Role", role, leading([name])), _binding("Role", role, subjects)]
    return documents


def _role(kind: str, metadata: dict[str, str], rights: Iterable[Right]) -> dict[str, Any]:
    rules = [
        {
            "apiGroups": [right.group],
            "resources": [right.resource],
            **({"resourceNames": [right.name]} if right.name else {}),
            "verbs": list(right.verbs),
        }
        for right in rights
    ]
    return {"apiVersion": _VERSION, "kind": kind, "metadata": dict(metadata), "rules": rules}


def _binding(kind: str, metadata: dict[str, str], subjects: list[Any]) -> dict[str, Any]:
    return {
        "apiVersion": _VERSION,
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": metadata["name"]},
        "subjects": [dict(subject) for subject in subjects],
    }


async def require_rights(client: HttpClient, leads: Iterable[str]) -> None:
    """Raises UserError, which names what is missing, where the cluster does not let the user schedule, and lead for these names."""
    from drayman.cluster.errors import ForbiddenError, NotFoundError

    names = tuple(leads)
    wanted = (*RIGHTS, *leading(names)) if names else RIGHTS
    try:
        missing = await _missing(client, wanted)
    except (ForbiddenError, NotFoundError) as error:
        # A cluster may not disclose rights. Then what is missing shows in what is refused.
        _log.warning("cannot ask what a scheduler may do here: %s", error)
        return
    if missing:
        raise UserError(
            f"on {client.connection} the scheduler lacks the rights to {'; '.join(map(str, missing))}."
            f" `drayman scheduler --print-rbac{_options(names)} | kubectl apply -f -` grants all it needs to the service"
            f" account {NAME} in {LEASE_NAMESPACE}: run it as that one"
        )


def _options(names: Iterable[str]) -> str:
    """The options that give these names; none for the name that is the default."""
    others = sorted(names)
    if others == [OWN_SCHEDULER]:
        return ""
    return "".join(f" --scheduler-name {quote(name)}" for name in others)


async def _missing(client: HttpClient, wanted: Sequence[Right]) -> list[Right]:
    """The wanted rights that the cluster does not grant, in the same order."""
    asked = [(right, verb) for right in wanted for verb in right.verbs]
    # One alone first, which shows whether the cluster can be reached; then all the others at once.
    answers = [await _may(client, *asked[0])]
    answers += await asyncio.gather(*(_may(client, *each) for each in asked[1:]))
    denied = [each for each, allowed in zip(asked, answers, strict=True) if not allowed]
    found: list[Right] = []
    for right in wanted:
        verbs = tuple(verb for of, verb in denied if of is right)
        if verbs:
            found.append(replace(right, verbs=verbs))
    return found


async def _may(client: HttpClient, right: Right, verb: str) -> bool:
    from drayman.cluster.resources import generic

    reviews = generic(
        "authorization.k8s.io/v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        namespaced=False,
    )
    resource, _, subresource = right.resource.partition("/")
    asked = {
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": verb,
        "name": right.name,
        "namespace": right.namespace,
    }
    answer = await client.create(reviews, {"spec": {"resourceAttributes": asked}})
    return bool(answer.get("status", {}).get("allowed"))
