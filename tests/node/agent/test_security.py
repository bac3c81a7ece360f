"""What pods say for the sake of security: what is acted on, what is refused, and what is told to be ignored."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.cluster.resources import JsonObject
from drayman.node.agent.environment import SourceError
from drayman.node.agent.launching import launch_of
from drayman.node.agent.processes.attempts import Launch
from drayman.node.agent.processes.executing import run_inside
from drayman.node.agent.spec import RunnablePod, ignored_fields
from drayman.plugins import cdi
from node.agent.test_attempts import lines
from node.agent.world import attempted, container, world

ENV = {"PATH": "/usr/bin:/bin"}
WHO = r'\(pod: "p_n\(u\)", container: main\)'
BY_USER = f"container's runAsUser breaks non-root policy {WHO}"
BY_IMAGE = f"container has runAsNonRoot and image will run as root {WHO}"
is_root = os.geteuid() == 0


@dataclass(frozen=True)
class Case:
    says: str
    want: Any
    own: dict[str, Any] = field(default_factory=dict)
    of_pod: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)

    def pod(self) -> RunnablePod:
        value = {
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {
                "containers": [container("true", securityContext=self.own)],
                "securityContext": self.of_pod,
                **self.spec,
            },
        }
        return convert(RunnablePod, value)

    def launch(self) -> Launch:
        pod = self.pod()
        (main,) = pod.spec.containers
        return launch_of(pod, main, ("true",), ENV, {}, cdi.merged(()), own_root=False)


NOT_ROOT: dict[str, Any] = {"runAsNonRoot": True}
REFUSED = [
    Case("the container says that it is root", BY_USER, {**NOT_ROOT, "runAsUser": 0}),
    Case("its pod does", BY_USER, NOT_ROOT, {"runAsUser": 0}),
    Case("its pod says that it must not be", BY_USER, {"runAsUser": 0}, NOT_ROOT),
    Case("nobody says who it is", BY_IMAGE if is_root else None, NOT_ROOT),
    Case("it is somebody else", None, {**NOT_ROOT, "runAsUser": 7}),
    Case(
        "it is somebody else than its pod says",
        None,
        {"runAsUser": 7},
        {**NOT_ROOT, "runAsUser": 0},
    ),
    Case("it may be root, whatever its pod says", None, {"runAsNonRoot": False}, NOT_ROOT),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.says)
def test_who_must_not_be_root(case: Case) -> None:
    """Each case says who is to run a container; it is refused in the words of a kubelet, or not."""
    if case.want is None:
        case.launch()
        return
    with pytest.raises(SourceError, match=case.want):
        case.launch()


def waiting(pod: JsonObject) -> dict[str, str]:
    """Why the container does not run, once that is known."""
    found: dict[str, str] = {}
    for status in pod["status"].get("containerStatuses", ()):
        found |= status["state"].get("waiting", {})
    return found


@pytest.mark.skipif(not is_root, reason="somebody else is not root")
async def test_a_refused_container_says_why() -> None:
    """As with a kubelet, it waits for a better spec."""
    async with world() as here, here.agent():
        await here.pod("p", container("true", securityContext=NOT_ROOT))
        found = await here.until("p", lambda pod: "message" in str(pod["status"]))
        waiting = found["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert waiting["message"].startswith(
            "container has runAsNonRoot and image will run as root"
        )


RUNTIME = {"type": "RuntimeDefault"}
OPEN = {"type": "Unconfined"}
IGNORED = [
    Case("nothing is said", ()),
    Case(
        "what is acted on",
        (),
        {"runAsUser": 7, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
        {"fsGroup": 7, "supplementalGroups": [8], "runAsNonRoot": True},
    ),
    Case("more rights", (), {"privileged": True}),
    Case("no more rights", (), {"privileged": False, "capabilities": {}}),
    Case("fewer rights", ("capabilities",), {"capabilities": {"drop": ["ALL"]}}),
    Case(
        "profiles",
        ("seccompProfile", "appArmorProfile"),
        {"seccompProfile": RUNTIME},
        {"appArmorProfile": RUNTIME},
    ),
    Case(
        "a container without its pod's profile",
        (),
        {"seccompProfile": OPEN},
        {"seccompProfile": RUNTIME},
    ),
    Case("labels of SELinux", ("seLinuxOptions",), {}, {"seLinuxOptions": {"level": "s0"}}),
    Case("a /proc with less in it", ("procMount",), {"procMount": "Default"}),
    Case("a /proc with everything", (), {"procMount": "Unmasked"}),
    Case("settings of the kernel", ("sysctls",), {}, {"sysctls": [{"name": "a", "value": "1"}]}),
    Case("users of its own", ("hostUsers",), spec={"hostUsers": False}),
]


@pytest.mark.parametrize("case", IGNORED, ids=lambda case: case.says)
def test_what_is_not_acted_on(case: Case) -> None:
    """Each case says what a pod asks for; its fields are named if nobody does it."""
    pod = case.pod()
    assert ignored_fields(pod, pod.spec.containers[0]) == case.want


@pytest.mark.parametrize(("allowed", "want"), [(False, "1"), (True, "0")])
async def test_no_more_privileges(allowed: bool, want: str, tmp_path: Path) -> None:
    """Neither a container nor a command in it gets more than it has, if that is said."""
    read = "sed -n 's/^NoNewPrivs:\\s*//p' /proc/self/status"
    case = Case("", None, {"allowPrivilegeEscalation": allowed})
    launch = Launch(
        argv=("sh", "-c", f"{read}; exec sleep 1010"),
        env=ENV,
        no_new_privileges=case.launch().no_new_privileges,
    )
    async with attempted(tmp_path / "0", launch) as attempt:
        while not (attempt.log.exists() and lines(attempt)):
            await asyncio.sleep(0.01)
        assert lines(attempt) == [f"stdout F {want}"]
        assert (await run_inside(attempt, ("sh", "-c", read))).text == want
