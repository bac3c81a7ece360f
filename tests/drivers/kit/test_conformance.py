"""A driver of the kit and a node, over real sockets, in the sequences that kubelets and drivers go through."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from drayman.cluster import merge_patch
from drayman.cluster.resources import NAMESPACES, RESOURCE_CLAIMS
from drayman.drivers.kit import Plugin
from drayman.plugins.calling import Connection, introduce
from drayman.plugins.errors import CallError, NoAnswerError, SocketError
from drayman.plugins.model import ClaimRef, Failed, PluginInfo, Ready, ReadyDevice
from drayman.plugins.services import V1BETA1
from drivers.kit.probing import NAME, NODE, Probe, SerialProbe, World, broken, names, world
from patience import PATIENCE_S

Sequence = Callable[[World], Awaitable[None]]


async def register(w: World) -> None:
    """A driver introduces itself with its name, its socket and the services it has, and is told that it is registered."""
    async with w.plugin(Probe()) as plugin:
        found = await w.kubelet.registered(NAME)
        socket = w.kubelet.plugins_dir / NAME / "dra.sock"
        assert found.client.info == PluginInfo(
            "DRAPlugin", NAME, str(socket), ("v1.DRAPlugin", "v1beta1.DRAPlugin")
        )
        assert found.client.version.name == "v1.DRAPlugin"
        assert plugin.server.registered is True
        slices = await w.until_slices(lambda found: len(found) == 1)
        assert names(slices) == [f"probe-{index}" for index in range(4)]


async def re_register(w: World) -> None:
    """A driver that has been away is registered again; what it had prepared is prepared still, without doing it twice."""
    claim = await w.claim("c", "probe-0")
    async with w.plugin(Probe()):
        first = await w.kubelet.prepare(NAME, claim)
        await w.until_slices(lambda found: len(found) == 1)
    await w.kubelet.deregistered(NAME)
    assert len(await w.slices()) == 1
    assert list(w.kubelet.registry_dir.iterdir()) == []
    again = Probe()
    async with w.plugin(again):
        await w.kubelet.registered(NAME)
        assert await w.kubelet.prepare(NAME, claim) == first
        assert again.calls == []


async def parallel_prepare(w: World) -> None:
    """Claims of one call, and of several, are prepared at the same time."""
    driver = Probe()
    meeting = asyncio.Barrier(3)

    async def meet(_claim: object) -> None:
        await meeting.wait()

    driver.while_preparing = meet
    claims = [await w.claim(f"c{index}", f"probe-{index}") for index in range(3)]
    async with w.plugin(driver):
        both, alone = await asyncio.gather(
            w.kubelet.prepare_all(NAME, claims[:2]), w.kubelet.prepare_all(NAME, claims[2:])
        )
    assert all(isinstance(answer, Ready) for answer in (both | alone).values())
    assert set(both | alone) == {claim.metadata.uid for claim in claims}
    assert driver.most_inside == 3


async def serial_prepare(w: World) -> None:
    """A driver that asks for it gets one claim at a time."""
    driver = SerialProbe()
    driver.while_preparing = lambda _claim: asyncio.sleep(0)
    claims = [await w.claim(f"c{index}", f"probe-{index}") for index in range(4)]
    async with w.plugin(driver):
        answers = await w.kubelet.prepare_all(NAME, claims)
    assert all(isinstance(answer, Ready) for answer in answers.values())
    assert driver.most_inside == 1


async def duplicate_prepare(w: World) -> None:
    """The same claim at the same time, and again later, gets the same answer, and is prepared once."""
    driver = Probe()
    claim = await w.claim("c", "probe-0")
    async with w.plugin(driver):
        answers = await asyncio.gather(*(w.kubelet.prepare(NAME, claim) for _ in range(5)))
        answers.append(await w.kubelet.prepare(NAME, claim))
    ready = Ready(
        (ReadyDevice(("a",), NODE, "probe-0", (f"k8s.{NAME}/claim={claim.metadata.uid}-probe-0",)),)
    )
    assert answers == [ready] * 6
    assert driver.calls == [("prepare", "c")]


async def allocated_again(w: World) -> None:
    """A claim that got other devices meanwhile is prepared anew: an old answer would give away a device of somebody else."""
    driver = Probe()
    claim = await w.claim("c", "probe-0")
    async with w.plugin(driver):
        assert isinstance(await w.kubelet.prepare(NAME, claim), Ready)
        result = {"request": "a", "driver": NAME, "pool": NODE, "device": "probe-1"}
        for allocation in (None, {"devices": {"results": [result]}}):
            patch = merge_patch({"status": {"allocation": allocation}})
            await w.cluster.client.patch(
                RESOURCE_CLAIMS, "c", patch, "default", subresource="status"
            )
        answer = await w.kubelet.prepare(NAME, claim)
        assert w.kubelet.container(answer).env["PROBE_A"] == "probe-1"
    assert driver.calls == [("prepare", "c"), ("unprepare", "c"), ("prepare", "c")]


async def given_up_and_asked_again(w: World) -> None:
    """A node that gives up waiting does not interrupt the work, and has the answer when it asks again."""
    driver = Probe()
    may_go_on = asyncio.Event()

    async def wait(_claim: object) -> None:
        await may_go_on.wait()

    driver.while_preparing = wait
    claim = await w.claim("c", "probe-0")
    async with w.plugin(driver):
        await w.kubelet.registered(NAME)
        with pytest.raises(NoAnswerError, match="DEADLINE_EXCEEDED") as given_up:
            await w.kubelet.prepare_all(NAME, [claim], timeout_s=0.2)
        assert given_up.value.waited_s == 0.2
        second = asyncio.create_task(w.kubelet.prepare(NAME, claim))
        may_go_on.set()
        assert isinstance(await second, Ready)
    assert driver.calls == [("prepare", "c")]


async def unknown_claim(w: World) -> None:
    """What does not exist, is another claim by now or has no devices is refused; to unprepare what is not prepared is fine."""
    driver = Probe()
    claim = await w.claim("c", "probe-0")
    remade = ClaimRef("default", "c", "11111111-2222-3333-4444-555555555555")
    absent = ClaimRef("default", "absent", "99999999-2222-3333-4444-555555555555")
    other = await w.cluster.allocate("other", "other.example.com", NODE, {"a": "x"})
    stray = await w.claim("stray", "probe-99")
    odd = ClaimRef("default", "odd", "../../etc/passwd")
    async with w.plugin(driver):
        answers = await w.kubelet.prepare_all(NAME, [remade, absent, other, stray])
        assert answers == {
            remade.uid: Failed(
                f"claim default/c was deleted and made again: its uid is {claim.metadata.uid}, not {remade.uid}"
            ),
            absent.uid: Failed("claim default/absent does not exist"),
            other.metadata.uid: Failed(f"claim default/other has no device of {NAME}"),
            stray.metadata.uid: Failed(f"device probe-99 of pool {NODE} is not on node {NODE}"),
        }
        removals = await w.kubelet.unprepare_all(NAME, [remade, absent, odd])
        assert removals == {remade.uid: None, absent.uid: None, odd.uid: None}
    assert driver.calls == []
    assert w.kubelet.cdi_files() == []


async def partial_failure(w: World) -> None:
    """A claim that cannot be prepared costs the others of the call nothing, leaves nothing behind, and may be tried again."""
    driver = Probe()
    driver.failing["probe-1"] = broken()
    driver.failing["probe-2"] = ValueError("a bug")
    good, bad, buggy = [await w.claim(f"c{index}", f"probe-{index}") for index in range(3)]
    async with w.plugin(driver):
        answers = await w.kubelet.prepare_all(NAME, [good, bad, buggy])
        assert isinstance(answers[good.metadata.uid], Ready)
        assert answers[bad.metadata.uid] == Failed("the probe is stuck")
        failed = "it failed: ValueError: a bug"
        assert answers[buggy.metadata.uid] == Failed(failed)
        assert ("unprepare", "c1") in driver.calls
        assert ("unprepare", "c2") in driver.calls
        assert len(w.kubelet.cdi_files()) == 1
        driver.failing.clear()
        assert isinstance(await w.kubelet.prepare(NAME, bad), Ready)


async def unprepare_twice(w: World) -> None:
    """A claim is undone once; nothing of it is left, and its device can be had by another one."""
    driver = Probe()
    driver.state = {"handle": 7}
    first, second = await w.claim("first", "probe-0", "probe-1"), None
    async with w.plugin(driver):
        answer = await w.kubelet.prepare(NAME, first)
        assert w.kubelet.container(answer).env["PROBE_A"] == "probe-0"
        assert await w.kubelet.unprepare(NAME, first) is None
        assert await w.kubelet.unprepare(NAME, first) is None
        assert w.kubelet.cdi_files() == []
        await w.cluster.remove_claim("first")
        second = await w.claim("second", "probe-0")
        assert isinstance(await w.kubelet.prepare(NAME, second), Ready)
    assert driver.calls == [("prepare", "first"), ("unprepare", "first"), ("prepare", "second")]


async def device_in_use(w: World) -> None:
    """A device that one claim has prepared is not given to another one until it is given back, not even by another instance."""
    async with w.plugin(Probe(), instance="a") as first:
        mine = await w.claim("mine", "probe-0")
        assert isinstance(await w.kubelet.prepare(NAME, mine), Ready)
        await w.cluster.remove_claim("mine")  # and the node has not noticed yet
        theirs = await w.claim("theirs", "probe-0")
        busy = Failed("device probe-0 is still prepared for claim default/mine")
        assert await w.kubelet.prepare(NAME, theirs) == busy
        async with w.plugin(Probe(), instance="b"):
            newer = await w.kubelet.registered(NAME, 2)
            ref = ClaimRef("default", "theirs", theirs.metadata.uid)
            # Whether it finds out at its start that the claim is gone, or is asked to give it back.
            assert await newer.client.unprepare([_ref(mine)]) == {mine.metadata.uid: None}
            assert isinstance((await newer.client.prepare([ref]))[ref.uid], Ready)
        assert await first.unprepare([ref]) == {ref.uid: None}


def _ref(claim) -> ClaimRef:
    return ClaimRef(claim.metadata.namespace, claim.metadata.name, claim.metadata.uid)


async def upgrade(w: World) -> None:
    """A new instance takes over while the old one is still there: answers are the same, and only the new one publishes."""
    claim = await w.claim("c", "probe-0")
    newer = Probe(count=3)
    async with w.plugin(Probe(), instance="old"):
        before = await w.kubelet.prepare(NAME, claim)
        await w.until_slices(lambda found: len(names(found)) == 4)
        async with w.plugin(newer, instance="new"):
            latest = await w.kubelet.registered(NAME, 2)
            assert latest.socket.name == f"{NAME}-new-reg.sock"
            assert await w.kubelet.prepare(NAME, claim) == before
            await w.until_slices(lambda found: len(names(found)) == 3)
        await w.kubelet.registered(NAME, 1)
        assert await w.kubelet.unprepare(NAME, claim) is None
    assert newer.calls == []


async def second_without_a_name(w: World) -> None:
    """Without names there can be one instance only, and a second one says so instead of taking the socket away."""
    async with w.plugin(Probe()):
        await w.kubelet.registered(NAME)
        with pytest.raises(SocketError, match=r"another process serves there.*--instance"):
            async with w.plugin(Probe()):
                pass
        assert isinstance(await w.kubelet.prepare(NAME, await w.claim("c", "probe-0")), Ready)


async def lost_api_server(w: World) -> None:
    """Without an API server what is prepared stays usable and can be given back; new claims get an error each, and later their devices."""
    driver = Probe()
    old, new = await w.claim("old", "probe-0"), await w.claim("new", "probe-1")
    async with w.plugin(driver, impatient=True):
        answer = await w.kubelet.prepare(NAME, old)
        await w.until_slices(lambda found: len(found) == 1)
        await w.cluster.stop()
        answers = await w.kubelet.prepare_all(NAME, [old, new])
        assert answers[old.metadata.uid] == answer
        lost = answers[new.metadata.uid]
        assert isinstance(lost, Failed)
        assert lost.message.startswith("the API server cannot be asked: ")
        assert await w.kubelet.unprepare(NAME, old) is None
        await w.cluster.start()
        assert isinstance(await w.kubelet.prepare(NAME, new), Ready)
    assert driver.calls == [("prepare", "old"), ("unprepare", "old"), ("prepare", "new")]


async def older_kubelet(w: World) -> None:
    """A node that only speaks v1beta1 gets the same, without the ids of shares."""
    share = "aaaaaaaa-1111-2222-3333-444444444444"
    claim = await w.cluster.allocate(
        "c", NAME, NODE, {"a": {"device": "probe-0", "shareID": share}}
    )
    async with w.plugin(Probe()) as plugin:
        new = await w.kubelet.prepare(NAME, claim)
        assert isinstance(new, Ready)
        assert new.devices[0].share_id == share
        async with Connection(Path(plugin.server.info.endpoint)) as connection:
            old = V1BETA1.answers(
                await connection.call(
                    V1BETA1.methods["NodePrepareResources"],
                    V1BETA1.prepare_request([_ref(claim)]),
                    PATIENCE_S,
                )
            )[claim.metadata.uid]
    assert isinstance(old, Ready)
    assert [(d.cdi_ids, d.share_id) for d in old.devices] == [(new.devices[0].cdi_ids, None)]


async def shares_and_administrators(w: World) -> None:
    """Shares of a device, and looks at it, do not exclude each other. Subrequests go by the names of their requests."""
    ids = [f"aaaaaaaa-1111-2222-3333-44444444444{index}" for index in range(2)]
    results = [{"device": "probe-0", "shareID": each} for each in ids]
    shared = [
        await w.cluster.allocate(f"s{at}", NAME, NODE, {"a/big": result})
        for at, result in enumerate(results)
    ]
    label = merge_patch({"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}})
    await w.cluster.client.patch(NAMESPACES, "default", label)
    looking = await w.cluster.allocate(
        "admin", NAME, NODE, {"a": {"device": "probe-0", "adminAccess": True}}
    )
    async with w.plugin(Probe()):
        answers = await w.kubelet.prepare_all(NAME, [*shared, looking])
    devices = [d for claim in (*shared, looking) for d in answers[claim.metadata.uid].devices]
    assert [device.requests for device in devices] == [("a",)] * 3
    assert [device.share_id for device in devices] == [*ids, None]
    assert len({id_ for device in devices for id_ in device.cdi_ids}) == 3


SEQUENCES: list[Sequence] = [
    register,
    re_register,
    parallel_prepare,
    serial_prepare,
    duplicate_prepare,
    allocated_again,
    given_up_and_asked_again,
    unknown_claim,
    partial_failure,
    unprepare_twice,
    device_in_use,
    upgrade,
    second_without_a_name,
    lost_api_server,
    older_kubelet,
    shares_and_administrators,
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda each: each.__name__)
async def test_a_driver_behaves_as_a_node_expects(sequence: Sequence) -> None:
    """See the sentence of each sequence."""
    async with world() as w:
        await sequence(w)


async def test_slices_that_a_node_has_deleted_come_back_with_the_driver() -> None:
    """A kubelet deletes those of a driver that stays away for too long."""
    async with world(wipe_after_s=0) as w:
        async with w.plugin(Probe()):
            await w.kubelet.registered(NAME)
            await w.until_slices(lambda found: len(found) == 1)
        await w.kubelet.deregistered(NAME)
        await w.until_slices(lambda found: not found)
        async with w.plugin(Probe()):
            await w.until_slices(lambda found: len(found) == 1)


async def test_a_driver_that_is_killed_while_it_prepares_undoes_it_first_when_it_is_back() -> None:
    """Killed with signal 9 between preparing and answering: the next one gives back what was half done, then prepares anew."""
    async with world() as w:
        claim = await w.cluster.allocate("s", "stuck.example.com", NODE, {"a": "stuck-0"})
        log = w.kubelet.registry_dir.parent / "log"
        hold = log.with_name("hold")
        hold.touch()
        driver = start(w, log, hold)
        try:
            first = await w.kubelet.registered("stuck.example.com")
            call = asyncio.create_task(w.kubelet.prepare("stuck.example.com", claim))
            await said(log, "prepared s")
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
            with pytest.raises(CallError, match=r"UNAVAILABLE|deregistered"):
                await call
            hold.unlink()
            driver = start(w, log, hold)
            await w.kubelet.registered_after(first)
            answer = await w.kubelet.prepare("stuck.example.com", claim)
            assert w.kubelet.container(answer).env == {"STUCK": "stuck-0"}
            lines = log.read_text().split("\n")
            assert lines[lines.index("prepared s") :] == [
                "prepared s",
                "serving",
                "unprepared s",
                "prepared s",
                "",
            ]
            assert await w.kubelet.unprepare("stuck.example.com", claim) is None
            assert w.kubelet.cdi_files() == []
            driver.terminate()
            assert driver.wait(PATIENCE_S) == 0
            assert list(w.kubelet.registry_dir.iterdir()) == []
        finally:
            driver.kill()
            driver.wait()


def start(w: World, log: Path, hold: Path) -> subprocess.Popen[bytes]:
    """The driver of `stuck.py` in a process of its own."""
    options = w.kubelet.options("stuck.example.com")
    return subprocess.Popen(
        [
            *(sys.executable, str(Path(__file__).with_name("stuck.py")), "--node", NODE),
            *("--kubeconfig", str(w.cluster.kubeconfig)),
            *("--plugin-dir", str(options.plugin_dir)),
            *("--registry-dir", str(options.registry_dir), "--cdi-dir", str(options.cdi_dir)),
            *("--log", str(log), "--hold", str(hold)),
        ]
    )


async def said(log: Path, line: str) -> None:
    """Returns when a process has written a line."""
    async with asyncio.timeout(PATIENCE_S):
        while not log.exists() or line not in log.read_text().split("\n"):
            await asyncio.sleep(0.02)


async def test_a_plugin_that_is_no_driver_is_told_so() -> None:
    """A node refuses what it does not know, with the reason."""
    async with world() as w:
        driver = Probe()
        plugin = Plugin(driver, w.cluster.client, w.kubelet.options(NAME))
        plugin.server.info = PluginInfo("DRAPlugin", NAME, "/x", ("v9.DRAPlugin",))
        async with plugin:
            async with asyncio.timeout(PATIENCE_S):
                while plugin.server.registered is None:
                    await asyncio.sleep(0.02)
            assert plugin.server.registered is False
            assert w.kubelet.registry.instances(NAME) == []
            async with Connection(plugin.server.sockets.registration) as connection:
                assert (await introduce(connection)).versions == ("v9.DRAPlugin",)
