"""The audit log: who did what, and in whose name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from security.realm import TEAM, realm, rule

from drayman.apiserver.security.audit import AuditLog


async def lines_of(path: Path) -> list[dict[str, Any]]:
    """What two requests leave: one by the administrator, one as another user."""
    async with realm() as here:
        await here.let("jane", rule("configmaps", "list"))
        log = AuditLog.open(path)
        here.server.observers.append(log)
        await here.send("GET", f"{TEAM}/configmaps")
        await here.by("jane", "GET", f"{TEAM}/configmaps")
        log.close()
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_request_names_its_sender(tmp_path: Path) -> None:
    """With groups, and nothing about impersonation."""
    own, _ = await lines_of(tmp_path / "audit.log")
    assert own["user"] == {
        "username": "kubernetes-admin",
        "groups": ["system:masters", "system:authenticated"],
    }
    assert "impersonatedUser" not in own


async def test_a_request_in_another_name_names_both(tmp_path: Path) -> None:
    """Who sent it comes first, as in Kubernetes; who it acted as stands beside, and why that was allowed."""
    _, acting = await lines_of(tmp_path / "audit.log")
    assert acting["user"]["username"] == "kubernetes-admin"
    assert acting["impersonatedUser"] == {"username": "jane", "groups": ["system:authenticated"]}
    constraint = acting["authenticationMetadata"]["impersonationConstraint"]
    assert constraint == "impersonate:user-info"


async def test_a_refused_impersonation_names_the_sender_alone(tmp_path: Path) -> None:
    """Nobody was impersonated."""
    path = tmp_path / "audit.log"
    async with realm() as here:
        log = AuditLog.open(path)
        here.server.observers.append(log)
        headers = {"authorization": "", "impersonate-user": "jane"}
        reply = await here.send("GET", f"{TEAM}/configmaps", None, headers)
        log.close()
    assert reply.status == 403
    (line,) = map(json.loads, path.read_text().splitlines())
    assert line["user"]["username"] == "system:anonymous"
    assert "impersonatedUser" not in line
