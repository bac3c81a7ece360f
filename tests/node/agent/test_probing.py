"""Probes and hooks of pods on a real node: the API server, the agent and the processes are all real."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drayman.cluster import strategic_merge_patch
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import PODS, JsonObject
from drayman.node.agent.processes.attempts import may_mount
from drayman.node.agent.running import AtEnd, NodeAgent
from drayman.testing.ports import kept_port
from node.agent.test_kills import start
from node.agent.test_serving import kubectl
from node.agent.world import NAMESPACE, World, container, world

FOREVER = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
PATIENT = {"timeoutSeconds": 30, "periodSeconds": 1}


def has_file(path: Path, **more: Any) -> JsonObject:
    """A probe that succeeds while there is a file."""
    return {"exec": {"command": ["test", "-e", str(path)]}, **PATIENT, **more}


def agent_of(here: World, **options: Any) -> NodeAgent:
    """An agent that leaves no container behind."""
    return NodeAgent(here.client, replace(here.options, at_end=AtEnd.REMOVE, **options))


def status(pod: JsonObject, name: str = "main") -> JsonObject:
    every = [
        *pod["status"].get("containerStatuses", ()),
        *pod["status"].get("initContainerStatuses", ()),
    ]
    found: JsonObject = next((each for each in every if each["name"] == name), {"state": {}})
    return found


def condition(pod: JsonObject, kind: str) -> JsonObject:
    every = pod["status"].get("conditions", ())
    found: JsonObject = next((each for each in every if each["type"] == kind), {})
    return found


def is_ready(pod: JsonObject) -> bool:
    return bool(condition(pod, "Ready").get("status") == "True")


def runs(name: str = "main") -> Callable[[JsonObject], object]:
    return lambda pod: status(pod, name)["state"].get("running")


async def test_a_container_is_ready_when_its_probe_says_so() -> None:
    """And is no longer when the probe fails; it runs on."""
    async with world() as here:
        file = here.shared / "ready"
        async with agent_of(here):
            probe = has_file(file, failureThreshold=1)
            await here.pod("p", container(FOREVER, readinessProbe=probe))
            waiting = await here.until("p", runs())
            assert (status(waiting)["ready"], status(waiting)["started"]) == (False, True)
            assert condition(waiting, "Ready")["reason"] == "ContainersNotReady"
            file.touch()
            await here.until("p", is_ready)
            file.unlink()
            ill = await here.until("p", lambda pod: not is_ready(pod))
            assert status(ill)["restartCount"] == 0
            await here.client.delete(PODS, "p", NAMESPACE)
            await here.gone("p")
        assert "Readiness probe failed: exit code 1" in await here.notes("Unhealthy")


async def test_a_container_that_does_not_live_is_restarted() -> None:
    """With the grace of its probe, even if it ends with code 0 and only failures restart; its last state is kept."""
    async with world() as here:
        file = here.shared / "alive"
        async with agent_of(here):
            file.parent.mkdir(exist_ok=True)
            file.touch()
            probe = has_file(file, failureThreshold=2, terminationGracePeriodSeconds=30)
            await here.pod(
                "p", container(FOREVER, livenessProbe=probe), restartPolicy="OnFailure",
                terminationGracePeriodSeconds=1,
            )  # fmt: skip
            await here.until("p", is_ready)
            file.unlink()
            found = await here.until("p", lambda pod: status(pod).get("restartCount") == 1)
            file.touch()
            assert status(found)["lastState"]["terminated"]["exitCode"] == 0
            again = await here.until("p", is_ready)
            assert status(again)["restartCount"] == 1
        assert await here.notes("Unhealthy") == {"Liveness probe failed: exit code 1"}
        assert await here.notes("Killing") == {
            "Container main failed liveness probe, will be restarted"
        }


async def test_a_container_that_does_not_start_is_ended() -> None:
    """Nothing else is asked before; under a policy that never restarts the pod fails."""
    async with world() as here:
        nowhere = here.shared / "nowhere"
        async with agent_of(here):
            await here.pod(
                "p",
                container(
                    "while :; do sleep 0.05; done",
                    startupProbe=has_file(nowhere, failureThreshold=2),
                    livenessProbe=has_file(nowhere, failureThreshold=1),
                    readinessProbe=has_file(nowhere),
                ),
            )
            starting = await here.until("p", runs())
            assert (status(starting)["started"], status(starting)["ready"]) == (False, False)
            failed = await here.phase("p", "Failed")
            assert status(failed)["state"]["terminated"]["exitCode"] == 143
        assert await here.notes("Unhealthy") == {"Startup probe failed: exit code 1"}
        assert await here.notes("Killing") == {"Container main failed startup probe"}


async def test_a_pod_that_leaves_is_asked_whether_it_is_ready() -> None:
    """And not whether it lives. That is reported while its containers end."""
    async with world() as here:
        root = here.shared
        (root / "ready").touch()
        script = f"trap '' TERM; while [ ! -e {root}/end ]; do sleep 0.05; done"
        async with agent_of(here):
            probe = has_file(root / "ready", failureThreshold=1)
            await here.pod(
                "p",
                container(script, readinessProbe=probe, livenessProbe=probe),
                terminationGracePeriodSeconds=600,
            )
            await here.until("p", is_ready)
            await here.client.delete(PODS, "p", NAMESPACE)
            await here.until("p", lambda pod: pod["metadata"].get("deletionTimestamp"))
            (root / "ready").unlink()
            leaving = await here.until("p", lambda pod: not is_ready(pod))
            assert "running" in status(leaving)["state"]
            (root / "end").touch()
            await here.gone("p")
        assert not await here.events("Killing")


async def test_a_container_that_is_being_ended_can_be_given_less_time() -> None:
    """Deleting its pod shortens what a probe had left it, and deleting it again shortens that."""
    async with world() as here, agent_of(here) as agent:
        nowhere = here.shared / "nowhere"
        probe = has_file(nowhere, failureThreshold=1, terminationGracePeriodSeconds=3600)
        pod = await here.pod(
            "p",
            container("trap '' TERM; while :; do sleep 0.05; done", livenessProbe=probe),
            restartPolicy="Always",
        )
        await here.until("p", runs())
        seen = agent.workers[pod["metadata"]["uid"]].containers.seen
        while not seen["main"].has_failed:
            await asyncio.sleep(0.01)
        for grace_s in (1800, 1):
            options = DeleteOptions(grace_period_seconds=grace_s)
            await here.client.delete(PODS, "p", NAMESPACE, options=options)
        await here.gone("p")


async def test_a_sidecar_has_to_start_before_the_next_container() -> None:
    """Its startup probe holds back the init container after it."""
    async with world() as here, agent_of(here):
        file = here.shared / "started"
        sidecar = container(FOREVER, "side", restartPolicy="Always", startupProbe=has_file(file))
        after = container("true", "after")
        await here.pod("p", container("true"), initContainers=[sidecar, after])
        waiting = await here.until("p", runs("side"))
        assert status(waiting, "side")["started"] is False
        assert "waiting" in status(waiting, "after")["state"]
        file.touch()
        await here.phase("p", "Succeeded")


async def test_readiness_gates() -> None:
    """A pod whose containers are ready is ready when others say so, too."""
    async with world() as here, agent_of(here):
        gates = [{"conditionType": "example.com/checked"}]
        await here.pod("p", container(FOREVER), readinessGates=gates)
        waiting = await here.until(
            "p", lambda pod: condition(pod, "ContainersReady").get("status") == "True"
        )
        assert condition(waiting, "Ready")["reason"] == "ReadinessGatesNotReady"
        for value in ("False", "True"):
            reported = {"conditions": [{"type": "example.com/checked", "status": value}]}
            patch = strategic_merge_patch({"status": reported})
            await here.client.patch(PODS, "p", patch, NAMESPACE, subresource="status")
            about = "" if value == "True" else "but False"
            await here.until(
                "p",
                lambda pod, value=value, about=about: (  # type: ignore[misc]
                    condition(pod, "Ready")["status"] == value
                    and about in condition(pod, "Ready").get("message", "")
                ),
            )


async def test_post_start_comes_before_everything_else() -> None:
    """Until it has returned, its container does not count as running and the next one is not started."""
    async with world() as here, agent_of(here) as agent:
        file = here.shared / "go"
        hook = f"echo hook >> {here.shared}/said; while [ ! -e {file} ]; do sleep 0.05; done"
        pod = await here.pod(
            "p",
            container(FOREVER, lifecycle={"postStart": {"exec": {"command": ["sh", "-c", hook]}}}),
            container("true", "second"),
        )
        said = here.shared / "said"
        while not said.exists():
            await asyncio.sleep(0.01)
        worker = agent.workers[pod["metadata"]["uid"]]
        assert worker.containers.attempt("second") is None
        now = await here.until("p", lambda pod: bool(pod["status"].get("containerStatuses")))
        assert status(now)["state"] == {"waiting": {"reason": "ContainerCreating"}}
        assert now["status"]["phase"] == "Pending"
        file.touch()
        await here.until("p", runs())
        await here.until("p", lambda pod: "terminated" in status(pod, "second")["state"])


async def test_a_failed_post_start_ends_its_container() -> None:
    """An event says why, and the restart policy decides what follows."""
    async with world() as here:
        async with agent_of(here):
            begun = here.shared / "begun"  # by then it knows what to do when it is ended
            script = f"while [ ! -e {begun} ]; do sleep 0.05; done; echo no; exit 5"
            hook = {"exec": {"command": ["sh", "-c", script]}}
            trap, _, rest = FOREVER.partition(";")
            waits = container(f"{trap}; touch {begun};{rest}", lifecycle={"postStart": hook})
            await here.pod("p", waits)
            await here.phase("p", "Succeeded")  # it ends with code 0
        assert await here.notes("FailedPostStartHook") == {"container main: exit code 5: no"}
        assert await here.notes("Killing") == {"Container main failed postStart hook"}


@pytest.fixture
def port() -> Iterator[int]:
    """One for the server in a container, which starts when it starts."""
    with kept_port() as kept:
        yield kept


async def test_hooks_by_http(port: int) -> None:
    """The container that is asked is the one that answers, at the address of the pod; preStop comes before the end."""
    server = (
        "import http.server, sys\n"
        "class Here(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        print(self.path, flush=True)\n"
        "        self.send_response(200); self.end_headers()\n"
        "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Here).serve_forever()\n"
    )
    action = {"port": "web", "path": "/bye"}
    async with world() as here:
        async with agent_of(here, address="127.0.0.1") as agent:
            pod = await here.pod(
                "p",
                {
                    "name": "main",
                    "image": "host",
                    "command": [sys.executable, "-c", server, str(port)],
                    "ports": [{"name": "web", "containerPort": port}],
                    "readinessProbe": {"httpGet": {"port": "web", "path": "/well"}, **PATIENT},
                    "lifecycle": {"preStop": {"httpGet": action}},
                },
                terminationGracePeriodSeconds=30,
            )
            await here.until("p", is_ready)
            said = agent.workers[pod["metadata"]["uid"]].containers.attempt("main")
            assert said is not None
            log = said.log.open()
            await here.client.delete(PODS, "p", NAMESPACE)
            await here.gone("p")
            paths = [line.split()[3] for line in log.read().splitlines() if " stdout " in line]
            log.close()
        assert paths[0] == "/well"
        assert "/bye" in paths
        assert not await here.events("FailedPreStopHook")


async def test_an_agent_that_was_killed_forgets_no_readiness() -> None:
    """The next one says what was said until a probe fails, runs no hook again, and reports no change in between."""
    async with world() as here:
        root = here.shared
        hook = {"exec": {"command": ["sh", "-c", f"echo once >> {root}/hooks"]}}
        script = f"echo >> {root}/asked; test -e {root}/ready"
        ready = {"exec": {"command": ["sh", "-c", script]}, **PATIENT, "failureThreshold": 1}
        (root / "ready").touch()
        first = start(here)
        try:
            await here.pod(
                "p", container(FOREVER, readinessProbe=ready, lifecycle={"postStart": hook})
            )
            before = await here.until("p", is_ready)
        finally:
            first.kill()
            first.wait()
        (root / "asked").unlink()
        async with agent_of(here):
            while not (root / "asked").exists():
                await asyncio.sleep(0.01)
            after = await here.client.get(PODS.as_values(), "p", NAMESPACE)
            assert condition(after, "Ready") == condition(before, "Ready")
            assert status(after) == status(before)
            (root / "ready").unlink()
            ill = await here.until("p", lambda pod: not is_ready(pod))
            assert status(ill)["restartCount"] == 0
            assert (root / "hooks").read_text() == "once\n"


async def test_a_hook_that_was_cut_off_is_not_run_again() -> None:
    """The container counts as running, and an event says so."""
    async with world() as here:
        root = here.shared
        script = f"echo once >> {root}/hooks; while [ ! -e {root}/end ]; do sleep 0.05; done"
        hook = {"exec": {"command": ["sh", "-c", script]}}
        first = start(here)
        try:
            await here.pod("p", container(FOREVER, lifecycle={"postStart": hook}))
            while not (root / "hooks").exists():
                await asyncio.sleep(0.01)
        finally:
            first.kill()
            first.wait()
        async with agent_of(here):
            await here.until("p", is_ready)
        (root / "end").touch()
        assert (root / "hooks").read_text() == "once\n"
        assert await here.notes("PostStartHookCutOff") == {
            "container main: the agent ended during postStart; it is not run again"
        }


async def test_an_agent_that_was_killed_while_it_ended_a_container() -> None:
    """The next one goes on with it, and restarts it though it has ended with code 0."""
    async with world() as here:
        root = here.shared
        (root / "alive").touch()
        stubborn = f"trap '' TERM; while [ ! -e {root}/end ]; do sleep 0.05; done"
        probe = has_file(root / "alive", failureThreshold=1)
        first = start(here)
        try:
            pod = await here.pod(
                "p", container(stubborn, livenessProbe=probe), restartPolicy="OnFailure",
                terminationGracePeriodSeconds=600,
            )  # fmt: skip
            await here.until("p", is_ready)
            (root / "alive").unlink()
            attempt = here.options.pods_dir / pod["metadata"]["uid"] / "containers" / "main" / "0"
            while not (attempt / "failed").exists():
                await asyncio.sleep(0.01)
        finally:
            first.kill()
            first.wait()
        (root / "alive").touch()
        async with agent_of(here):
            (root / "end").touch()
            after = await here.until("p", lambda pod: status(pod).get("restartCount", 0) >= 1)
            assert status(after)["lastState"]["terminated"]["exitCode"] == 0


@pytest.mark.skipif(not may_mount(), reason="this machine permits no mount namespaces")
async def test_last_words_in_a_file() -> None:
    """What a container writes where it is told to is in its status; the file is not one of the host."""
    async with world() as here, agent_of(here):
        path = "/nowhere-on-the-host/last"
        await here.pod(
            "p",
            container(f"echo sorry > {path}; exit 3", terminationMessagePath=path),
            container("echo fine > /dev/termination-log", "other"),
        )
        ended = await here.phase("p", "Failed")
        assert status(ended)["state"]["terminated"]["message"] == "sorry\n"
        assert status(ended, "other")["state"]["terminated"]["message"] == "fine\n"
        assert not Path(path).exists()


async def test_last_words_from_the_log() -> None:
    """A container that failed and wrote no message shows the end of its log, if it wants that."""
    async with world() as here, agent_of(here):
        policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
        await here.pod(
            "p",
            container("seq 1000; exit 1", **policy),
            container("echo hello", "fine", **policy),
            container("echo hello; exit 1", "silent"),
        )
        ended = await here.phase("p", "Failed")
        message = status(ended)["state"]["terminated"]["message"]
        assert message == "".join(f"{number}\n" for number in range(921, 1001))
        assert "message" not in status(ended, "fine")["state"]["terminated"]
        assert "message" not in status(ended, "silent")["state"]["terminated"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
async def test_kubectl_waits_for_a_probe() -> None:
    """`kubectl wait` returns when the probe has succeeded, and `kubectl get events` shows that it failed before."""
    async with world() as here:
        file = here.shared / "ready"
        async with agent_of(here):
            await here.pod("p", container(FOREVER, readinessProbe=has_file(file)))
            waiting = asyncio.create_task(
                kubectl(here, "wait", "--for=condition=Ready", "pod/p", "--timeout=120s")
            )
            assert await here.notes("Unhealthy") == {"Readiness probe failed: exit code 1"}
            assert not waiting.done()
            file.touch()
            assert await waiting == (0, "pod/p condition met\n", "")
            code, table, _ = await kubectl(
                here, "get", "events", "--field-selector=reason=Unhealthy"
            )
            assert code == 0
            assert "Readiness probe failed: exit code 1" in table
