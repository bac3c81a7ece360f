"""The optional rights to name an owner."""

from __future__ import annotations

from typing import Any

import pytest
from security.realm import MERGE, TEAM, Realm, realm, rule

from drayman.apiserver.security.owner_references import OwnerPermissions

MAPS = f"{TEAM}/configmaps"
EDIT = rule("configmaps", "create update patch get")
DELETE = rule("configmaps", "delete")
FINALIZERS = rule("pods/finalizers", "update")


def owner(*, blocks: bool = False, kind: str = "Pod", uid: str = "u") -> dict[str, Any]:
    block = {"blockOwnerDeletion": True} if blocks else {}
    return {"apiVersion": "v1", "kind": kind, "name": "p", "uid": uid, **block}


def owned(*owners: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "m", "ownerReferences": list(owners)}}


def enforce(here: Realm) -> None:
    core = here.server.core
    core.admission.plugins.append(OwnerPermissions(core.authorizer, core.resources))


CASES = {
    "no owner": ((EDIT,), owned(), ""),
    "an owner, by a user who may delete": ((EDIT, DELETE), owned(owner()), ""),
    "an owner, by a user who may not delete": (
        (EDIT,),
        owned(owner()),
        "cannot set an ownerRef on a resource you can't delete: , <nil>",
    ),
    "a held-up owner, by a user with its finalizers": (
        (EDIT, DELETE, FINALIZERS),
        owned(owner(blocks=True)),
        "",
    ),
    "a held-up owner, by a user without its finalizers": (
        (EDIT, DELETE),
        owned(owner(blocks=True)),
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: "
        ", <nil>",
    ),
    "a held-up owner of an unknown kind": (
        (EDIT, DELETE, FINALIZERS),
        owned(owner(blocks=True, kind="Zebra")),
        "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v1 Kind Zebra: "
        'no matches for kind "Zebra" in version "v1"',
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_naming_an_owner_needs_rights(name: str) -> None:
    """To delete what gets an owner, and to the finalizers of an owner that is held up."""
    rules, body, want = CASES[name]
    async with realm() as here:
        enforce(here)
        await here.let("eve", *rules)
        reply = await here.by("eve", "POST", MAPS, body)
        if want:
            message = f'configmaps "m" is forbidden: {want}'
            assert (reply.status, reply.message) == (403, message)
        else:
            assert reply.status == 201, reply


async def test_owners_that_stay_need_no_right() -> None:
    """Only a change of owners does, and only what becomes held up by it."""
    async with realm() as here:
        enforce(here)
        await here.let("eve", EDIT)
        await here.let("ann", EDIT, DELETE)
        await here.make(MAPS, owned(owner(blocks=True)))
        data = {"data": {"a": "b"}}
        path = f"{MAPS}/m"
        assert (await here.by("eve", "PATCH", path, data, kind=MERGE)).status == 200
        more = owned(owner(blocks=True), owner(uid="v"))
        assert (await here.by("ann", "PATCH", path, more, kind=MERGE)).status == 200
        fewer = {"metadata": {"ownerReferences": None}}
        assert (await here.by("eve", "PATCH", path, fewer, kind=MERGE)).status == 403
