"""The audit log: who did what, and in whose name."""

from __future__ import annotations

import json
import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from security.realm import TEAM, TEAM_RBAC, realm, rule

from drayman.apiserver.protocol.access import Attributes
from drayman.apiserver.protocol.exchange import Request
from drayman.apiserver.security.audit import MOST_WAITING, AuditLog


async def lines_of(path: Path) -> list[dict[str, Any]]:
    """What two requests leave: one by the administrator, one as another user."""
    async with realm() as here:
        await here.let("jane", rule("configmaps", "list"))
        log = AuditLog(path, here.server.metrics.audit_errors)
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
        log = AuditLog(path, here.server.metrics.audit_errors)
        here.server.observers.append(log)
        headers = {"authorization": "", "impersonate-user": "jane"}
        reply = await here.send("GET", f"{TEAM}/configmaps", None, headers)
        log.close()
    assert reply.status == 403
    (line,) = map(json.loads, path.read_text().splitlines())
    assert line["user"]["username"] == "system:anonymous"
    assert "impersonatedUser" not in line


async def test_a_refusal_says_what_it_is_about(tmp_path: Path) -> None:
    """Verb and object in the terms of Kubernetes, as for requests that are carried out, in the log and in the metrics."""
    path = tmp_path / "audit.log"
    async with realm() as here:
        log = AuditLog(path, here.server.metrics.audit_errors)
        here.server.observers.append(log)
        role = {"metadata": {"name": "more"}, "rules": [rule("secrets", "get")]}
        assert (await here.by("jane", "POST", f"{TEAM_RBAC}/roles", role)).status == 403
        assert (await here.by("jane", "GET", f"{TEAM}/secrets")).status == 403
        assert (await here.send("GET", f"{TEAM}/secrets/none")).status == 404
        log.close()
        metrics = here.server.metrics.answer().body.decode()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    found = [(line["verb"], line["objectRef"]) for line in lines]
    assert [(verb, about["resource"], about.get("name")) for verb, about in found] == [
        ("create", "roles", None),  # refused before its body was read
        ("list", "secrets", None),
        ("get", "secrets", "none"),
    ]
    assert 'code="403",group="rbac.authorization.k8s.io",resource="roles"' in metrics


async def test_a_creation_names_its_object(tmp_path: Path) -> None:
    """Also one that is refused for what it says; a name that no object can have is left out."""
    path = tmp_path / "audit.log"
    async with realm() as here:
        log = AuditLog(path, here.server.metrics.audit_errors)
        here.server.observers.append(log)
        for name, status in (("m", 201), ("m", 409), ("M", 422), ("m" * 1000, 422)):
            made = await here.send("POST", f"{TEAM}/configmaps", {"metadata": {"name": name}})
            assert made.status == status
        log.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["objectRef"].get("name") for line in lines] == ["m", "m", "M", None]


async def test_a_request_about_no_resource_has_no_object(tmp_path: Path) -> None:
    """And its times are those of Kubernetes' audit events: to the microsecond, the arrival first."""
    path = tmp_path / "audit.log"
    async with realm() as here:
        log = AuditLog(path, here.server.metrics.audit_errors)
        here.server.observers.append(log)
        await here.send("GET", "/version")
        log.close()
    (line,) = map(json.loads, path.read_text().splitlines())
    assert "objectRef" not in line
    times = [line["requestReceivedTimestamp"], line["stageTimestamp"]]
    assert times == sorted(times)
    assert all(re.fullmatch(r".{10}T.{8}\.\d{6}Z", each) for each in times)


@contextmanager
def full_disk(after: int = 0) -> Iterator[None]:
    """A disk with room for this many bytes: the kernel's limit on the files that this process writes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_log_that_cannot_be_written_changes_no_answer(tmp_path: Path) -> None:
    """The write is done and says so; what is lost is counted, and health says why until it works again."""
    path = tmp_path / "audit.log"
    async with realm() as here:
        log = AuditLog(path, here.server.metrics.audit_errors)
        here.server.observers.append(log)
        with full_disk():
            made = await here.send("POST", f"{TEAM}/configmaps", {"metadata": {"name": "m"}})
            log.flush()
        assert made.status == 201
        assert log.problem == f"{path}: File too large"
        metrics = here.server.metrics.answer().body.decode()
        assert "apiserver_audit_error_total 1.0" in metrics
        assert (await here.send("GET", f"{TEAM}/configmaps/m")).status == 200
        log.flush()
        assert log.problem is None
        log.close()


async def test_a_line_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    """What fitted of a line on a full disk is removed, so that the log consists of whole events."""
    path = tmp_path / "audit.log"
    async with realm() as here:
        log = AuditLog(path, here.server.metrics.audit_errors)
        here.server.observers.append(log)
        with full_disk(after=100):
            await here.send("GET", f"{TEAM}/configmaps")
            log.flush()
        await here.send("GET", f"{TEAM}/secrets")
        log.close()
    (whole,) = path.read_text().splitlines()
    assert json.loads(whole)["objectRef"]["resource"] == "secrets"


@pytest.mark.parametrize("torn", ['{"kind":"Ev', "x" * 200_000])
async def test_a_line_torn_by_a_crash_is_removed(torn: str, tmp_path: Path) -> None:
    """A new process removes the part of a line at the end of the log, and keeps the events before it."""
    path = tmp_path / "audit.log"
    path.write_text('{"kind":"Event"}\n' + torn)
    async with realm() as here:
        log = AuditLog(path, here.server.metrics.audit_errors)
        here.server.observers.append(log)
        await here.send("GET", f"{TEAM}/secrets")
        await here.send("GET", f"{TEAM}/configmaps")
        log.close()
    lines = [json.loads(each) for each in path.read_text().splitlines()]
    assert lines[0] == {"kind": "Event"}
    assert [each["objectRef"]["resource"] for each in lines[1:]] == ["secrets", "configmaps"]


async def test_a_slow_disk_keeps_no_request_waiting(tmp_path: Path) -> None:
    """A log that takes nothing, here a full pipe, delays no answer; events beyond the bound are lost and counted."""
    path = tmp_path / "audit.log"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    async with realm() as here:
        log = AuditLog(path, here.server.metrics.audit_errors)
        here.server.observers.append(log)
        attributes = Attributes("get", path="/version")
        for _ in range(MOST_WAITING + 2_000):
            log.finished(Request("GET", "/version"), attributes, 200, 0.0)
        assert (await here.send("GET", "/version")).status == 200
        assert log.problem == f"{path}: more than {MOST_WAITING} events wait to be written"
        os.set_blocking(reader, True)
        draining = Thread(target=lambda: [0 for _ in iter(lambda: os.read(reader, 1 << 20), b"")])
        draining.start()
        log.close()
        draining.join()
        os.close(reader)


class Broken:
    def finished(self, *_: object) -> None:
        raise RuntimeError("a bug")


async def test_a_bug_in_an_observer_changes_no_answer() -> None:
    """What was asked for is done already."""
    async with realm() as here:
        here.server.observers.append(Broken())
        made = await here.send("POST", f"{TEAM}/configmaps", {"metadata": {"name": "m"}})
        assert made.status == 201
