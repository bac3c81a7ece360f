"""Logs and commands of a real node, asked for by kubectl."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import ssl
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest
from cryptography import x509

from drayman.apiserver.instance.folder import Folder
from drayman.apiserver.instance.node_access import node_kubeconfig
from drayman.apiserver.security.authority import SigningAuthority
from drayman.cluster import HttpClient, Informers
from drayman.cluster.resources import SIGNING_REQUESTS, JsonObject
from drayman.controllers.certificates.approving import NodeCertificateApprover
from drayman.controllers.certificates.signing import CertificateSigner
from drayman.controllers.running import start_controllers
from drayman.node.agent.api.admitting import Gate
from drayman.node.agent.running import NodeAgent
from node.agent.world import NODE, World, container, is_up, world
from patience import PATIENCE_S


async def kubectl(here: World, *words: str, fed: str = "") -> tuple[int, str, str]:
    """Its exit status and what it said."""
    process = await asyncio.create_subprocess_exec(
        *("kubectl", "--kubeconfig", str(here.cluster.kubeconfig), *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = await process.communicate(fed.encode())
    assert process.returncode is not None
    # It remarks on the empty message with which a session begins, if that comes before it has made the streams.
    said = re.sub(r".*Unknown stream id \d, discarding message\n", "", errors.decode())
    return process.returncode, output.decode(), said


@asynccontextmanager
async def served(here: World, *, approves: bool = True) -> AsyncIterator[NodeAgent]:
    """An agent with the identity of its node, and a cluster that signs certificates, and approves them or leaves that to people."""
    folder = Folder(here.cluster.kubeconfig.parent)
    running = folder.running()
    assert running is not None
    config = here.options.root.with_name("node.conf")
    config.write_bytes(node_kubeconfig(folder, running.url, NODE, datetime.now(UTC)))
    authority = SigningAuthority(folder.certificates, lambda: datetime.now(UTC))
    signer = partial(CertificateSigner, authority=authority)
    informers = Informers(here.client)
    makes = (NodeCertificateApprover, signer) if approves else (signer,)
    controllers = await start_controllers(here.client, informers, makes)
    try:
        async with HttpClient.from_environment(config) as client:
            options = replace(
                here.options,
                address="127.0.0.1",
                authority=client.connection.trust.ca,
                approval_s=here.options.approval_s if approves else 0.05,
            )
            async with NodeAgent(client, options) as agent:
                yield agent
    finally:
        await controllers.stop()
        await informers.stop()


@asynccontextmanager
async def a_pod(here: World) -> AsyncIterator[JsonObject]:
    script = "echo up; while [ ! -e $DONE ]; do sleep 0.05; done; echo end"
    done = here.shared / "done"
    pod = await here.pod("p", container(script, env=[{"name": "DONE", "value": str(done)}]))
    yield await is_up(here, pod)
    done.touch()
    await here.phase(pod["metadata"]["name"], "Succeeded")


def shown(agent: NodeAgent) -> x509.Certificate:
    """The certificate that callers see."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", agent.port)) as connection,
        context.wrap_socket(connection) as secured,
    ):
        found = secured.getpeercert(binary_form=True)
    assert found is not None
    return x509.load_der_x509_certificate(found)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
async def test_logs_and_commands() -> None:
    """Logs can be followed to the end, commands have input, output and an exit code, and refusals are in words."""
    async with world() as here, served(here), a_pod(here):
        assert await kubectl(here, "exec", "-i", "p", "--", "cat", fed="hello") == (0, "hello", "")
        code, output, _ = await kubectl(here, "exec", "p", "--", "sh", "-c", "echo $DONE; exit 4")
        assert (code, output.strip()) == (4, str(here.shared / "done"))
        following = asyncio.create_task(kubectl(here, "logs", "-f", "p"))
        (here.shared / "done").touch()
        assert await following == (0, "up\nend\n", "")
        await here.phase("p", "Succeeded")
        assert await kubectl(here, "logs", "p", "--tail=1") == (0, "end\n", "")
        code, _, errors = await kubectl(here, "logs", "p", "--previous")
        assert code == 1
        assert "previous terminated container" in errors


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
async def test_a_container_that_waits() -> None:
    """Whoever asks for its log is told what it waits for, and whoever has a command for it that it does not run."""
    async with world() as here, served(here):
        main = container("true")
        await here.pod("pulls", main | {"image": "elsewhere"})
        await here.notes("Failed")
        begins = 'container "main" in pod "{}" is waiting to start: {}\n'
        _, _, errors = await kubectl(here, "logs", "pulls")
        assert errors.endswith(begins.format("pulls", "ErrImageNeverPull"))
        _, _, errors = await kubectl(here, "exec", "pulls", "--", "true")
        assert errors == 'error: container "main" is not running\n'
        await here.pod("begins", main, initContainers=[container("exec sleep 1007", "first")])
        await here.until("begins", lambda pod: pod["status"].get("initContainerStatuses"))
        _, _, errors = await kubectl(here, "logs", "begins", "-c", "main")
        assert errors.endswith(begins.format("begins", "PodInitializing"))


async def test_a_certificate_is_kept_and_renewed() -> None:
    """Its file is private. An agent that starts again uses it, and connections after a renewal see another."""
    async with world() as here:
        async with served(here) as agent:
            first = await asyncio.to_thread(shown, agent)
            path = here.options.root / "serving.pem"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert not (here.options.root / "serving.key").exists()
        async with served(here) as agent:
            assert await asyncio.to_thread(shown, agent) == first
            assert agent.server is not None
            renewal = await agent.server.renew()
            second = await asyncio.to_thread(shown, agent)
            assert second != first
            assert datetime.now(UTC) < renewal < second.not_valid_after_utc
        assert len((await here.client.list(SIGNING_REQUESTS)).items) == 2


@pytest.mark.parametrize("content", [b"", b"no certificate", b"-----BEGIN PRIVATE KEY-----\n!"])
async def test_a_file_that_makes_no_sense_is_replaced(content: bytes) -> None:
    """As is one for another address, or for another cluster."""
    async with world() as here:
        here.options.root.mkdir(parents=True)
        for name in ("serving.pem", "serving.key"):
            (here.options.root / name).write_bytes(content)
        async with served(here) as agent:
            assert agent.port > 0


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
async def test_a_node_works_while_its_certificate_waits_for_approval() -> None:
    """Pods run, an event says what to do, another agent waits for the same request, and after approval the node serves."""
    async with world() as here:
        async with served(here, approves=False), a_pod(here):
            pass
        async with served(here, approves=False) as agent, asyncio.timeout(PATIENCE_S):
            (request,) = (await here.client.list(SIGNING_REQUESTS)).items
            assert agent.port == 0
            while not (events := await here.events("CertificatePending")):
                await asyncio.sleep(0.02)
            name = request.metadata.name
            assert f"kubectl certificate approve {name}" in events[0]["note"]
            code, output, errors = await kubectl(here, "certificate", "approve", name)
            assert (code, errors) == (0, ""), output
            assert agent.server is not None
            await agent.server.serves.wait()
            assert await kubectl(here, "logs", "p") == (0, "up\nend\n", "")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
async def test_a_refusal_is_said() -> None:
    """The event has the words of who refused; the agent goes on."""
    async with world() as here, served(here, approves=False), asyncio.timeout(PATIENCE_S):
        while not (requests := (await here.client.list(SIGNING_REQUESTS)).items):
            await asyncio.sleep(0.02)
        await kubectl(here, "certificate", "deny", requests[0].metadata.name)
        while not (events := await here.events("CertificateRefused")):
            await asyncio.sleep(0.02)
        assert "Denied" in events[0]["note"]
        async with a_pod(here):
            pass


async def test_who_is_let_in_is_for_the_cluster_to_say() -> None:
    """The authority also signs for users and other nodes: a certificate of it alone opens nothing."""
    async with world() as here, served(here) as agent:
        gate = Gate(agent.client, NODE)
        for _ in range(2):
            assert await gate.lets_in(("kube-apiserver-kubelet-client", ("system:masters",)), "get")
            assert not await gate.lets_in(("jane", ("team",)), "get")
            assert not await gate.lets_in(("system:node:node-2", ("system:nodes",)), "create")
            assert not await gate.lets_in(("", ()), "get")
