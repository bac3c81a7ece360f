"""What the kit does for a driver besides answering calls: slices, CDI files, health, status, configuration, metrics."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterable, Sequence
from contextlib import aclosing

import pytest
from msgspec.structs import replace
from prometheus_client import generate_latest

from drayman.api.meta import Condition
from drayman.api.resource import Device, NetworkDeviceData
from drayman.api.struct import ApiStruct, Int64, Json
from drayman.cluster import merge_patch
from drayman.cluster.resources import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from drayman.drivers.kit import (
    Claim,
    Config,
    Hardware,
    Health,
    KitError,
    Plugin,
    Prepared,
    PreparedDevice,
)
from drayman.plugins.cdi import DeviceNode
from drayman.plugins.model import Failed, HealthState, Ready
from drivers.kit.probing import NAME, NODE, Probe, SickProbe, names, world
from patience import PATIENCE_S


async def test_containers_get_what_the_driver_says_by_request() -> None:
    """Variables and device nodes of the devices that they use, by the configuration of the claim; afterwards no file is left."""
    async with world() as w, w.plugin(Probe()):
        claim = await w.claim("c", "probe-0", "probe-1", depth=3)
        answer = await w.kubelet.prepare(NAME, claim)
        both, one = w.kubelet.container(answer), w.kubelet.container(answer, "b")
        assert both.env == {"PROBE_A": "probe-0", "PROBE_B": "probe-1", "DEPTH": "3"}
        assert one.env == {"PROBE_B": "probe-1", "DEPTH": "3"}
        assert one.device_nodes == (DeviceNode(path="/dev/probe-1"),)
        uid = claim.metadata.uid
        assert w.kubelet.cdi_files() == [f"k8s.{NAME}-claim_{uid}.json"]
        (w.kubelet.cdi_dir / f"k8s.{NAME}-claim_{uid}.json").unlink()
        assert await w.kubelet.prepare(NAME, claim) == answer
        assert w.kubelet.container(answer) == both
        assert await w.kubelet.unprepare(NAME, claim) is None
        assert w.kubelet.cdi_files() == []


async def test_a_wrong_configuration_is_the_answer_in_the_drivers_words() -> None:
    """Nothing is prepared."""
    driver = Probe()
    async with world() as w, w.plugin(driver):
        mistyped = await w.claim("mistyped", "probe-0", depht=3)
        shallow = await w.claim("shallow", "probe-1", depth=0)
        answers = await w.kubelet.prepare_all(NAME, [mistyped, shallow])
        assert answers == {
            mistyped.metadata.uid: Failed("configuration of the claim: unknown field depht"),
            shallow.metadata.uid: Failed("configuration of the claim: depth: must be at least 1"),
        }
    assert driver.calls == []


def failures(plugin: Plugin, what: str) -> float:
    name = f"drayman_driver_{what}_failures_total"
    return plugin.metrics.registry.get_sample_value(name, {"driver": NAME}) or 0.0


class Vanishing(Probe):
    """Finds nothing, or fails, when it is told to."""

    fails = False

    def discover(self) -> Iterable[Device]:
        if self.fails:
            raise OSError("the bus is gone")
        return super().discover()


async def test_devices_in_use_are_not_taken_back_by_a_discovery_that_finds_nothing() -> None:
    """Nor by one that fails; when nothing is in use any more, what is gone is gone."""
    driver = Vanishing()
    async with world() as w, w.plugin(driver) as plugin:
        await w.until_slices(lambda found: len(names(found)) == 4)
        claim = await w.claim("c", "probe-0")
        assert isinstance(await w.kubelet.prepare(NAME, claim), Ready)
        driver.count = 0
        assert not await plugin.discover()
        driver.fails = True
        assert not await plugin.discover()
        assert len(names(await w.slices())) == 4
        assert failures(plugin, "discovery") == 2
        driver.fails = False
        assert await w.kubelet.unprepare(NAME, claim) is None
        driver.changed()
        await w.until_slices(lambda found: not found)


async def test_slices_are_put_right_whoever_deletes_or_changes_them() -> None:
    """They are watched."""
    async with world() as w, w.plugin(Probe(count=130)):
        first, second = await w.until_slices(lambda found: len(found) == 2)
        assert first.metadata.owner_references[0].name == NODE
        await w.cluster.client.delete(RESOURCE_SLICES, first.metadata.name)
        await w.until_slices(lambda found: len(found) == 2)
        emptied = merge_patch({"spec": {"devices": [{"name": "wrong"}]}})
        await w.cluster.client.patch(RESOURCE_SLICES, second.metadata.name, emptied)
        found = await w.until_slices(lambda found: "wrong" not in names(found))
        assert len(names(found)) == 130


class Labelling(Probe):
    """Knows something about the node."""

    fabric = "left"

    def discover(self) -> Hardware:
        found = Hardware.of(super().discover())
        return replace(found, labels={"example.com/fabric": self.fabric})


async def test_labels_of_the_hardware_are_the_nodes() -> None:
    """They are set, and changed when they change; those of others stay."""
    driver = Labelling()
    async with world() as w, w.plugin(driver):
        client = w.cluster.client
        patch = merge_patch({"metadata": {"labels": {"example.com/other": "x"}}})
        await client.patch(NODES, NODE, patch)
        await w.until_slices(lambda found: len(names(found)) == 4)
        for fabric in ("left", "right"):
            driver.fabric = fabric
            driver.changed()
            wanted = {"example.com/fabric": fabric, "example.com/other": "x"}
            await w.until_labelled(wanted)


async def test_a_node_that_is_missing_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """However often it is tried; when the node comes, its slices do."""
    publishing = "drayman.drivers.kit.publishing"
    caplog.set_level(logging.INFO, publishing)
    async with world() as w, w.plugin(Probe("late")) as plugin:
        while failures(plugin, "publish") < 3:
            await asyncio.sleep(0.02)
        await w.cluster.add_node("late")
        await w.until_slices(lambda found: len(names(found)) == 4)
    told = [each.getMessage() for each in caplog.records if each.name == publishing]
    assert told == [f'slices of {NAME}: nodes "late" not found', f"slices of {NAME}: written"]


async def test_publishing_goes_on_when_the_newest_instance_can_be_told_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever is wrong with the file that names it, which is told once."""
    caplog.set_level(logging.INFO, "drayman.drivers.kit.publishing")
    async with world() as w, w.plugin(Probe()) as plugin, asyncio.timeout(PATIENCE_S):
        (found,) = await w.until_slices(lambda found: len(names(found)) == 4)
        newest = plugin.folder / "newest"
        newest.unlink()
        newest.mkdir()
        await w.cluster.client.delete(RESOURCE_SLICES, found.metadata.name)
        while failures(plugin, "publish") < 3:
            await asyncio.sleep(0.02)
        newest.rmdir()
        await w.until_slices(lambda found: len(names(found)) == 4)
    told = [each.getMessage() for each in caplog.records]
    assert told == [
        f"slices of {NAME}: whether this instance publishes them cannot be told: Is a directory",
        f"slices of {NAME}: written",
    ]


class Vague(Probe):
    """Its author has taken a number for a word."""

    discover_every_s = "soon"  # type: ignore[assignment]


async def test_what_the_kit_cannot_go_on_with_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """When it ends: within a node nobody asks a driver how it is."""
    async with world() as w, w.plugin(Vague()), asyncio.timeout(PATIENCE_S):
        while not caplog.records:
            await asyncio.sleep(0.02)
    (record,) = caplog.records
    assert record.getMessage() == f"the discovery of driver {NAME} has failed"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], TypeError)


async def test_metrics_are_served_as_long_as_the_driver_runs() -> None:
    """Afterwards the port is free."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address: tuple[str, int] = listening.getsockname()
    async with world() as w:
        options = w.kubelet.options(NAME)
        measured = type(options)(
            plugin_dir=options.plugin_dir,
            registry_dir=options.registry_dir,
            cdi_dir=options.cdi_dir,
            metrics_port=address[1],
        )
        async with Plugin(Probe(), w.cluster.client, measured):
            said = await metrics(address)
        assert f'drayman_driver_claims_prepared{{driver="{NAME}"}} 0.0' in said
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)


async def metrics(address: tuple[str, int]) -> str:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.decode()


async def test_slices_go_with_a_driver_that_was_asked_to_wipe_them() -> None:
    """They stay otherwise, as other tests show."""
    async with world() as w:
        options = w.kubelet.options(NAME)
        wiping = type(options)(
            plugin_dir=options.plugin_dir,
            registry_dir=options.registry_dir,
            cdi_dir=options.cdi_dir,
            wipe_on_exit=True,
        )
        async with Plugin(Probe(), w.cluster.client, wiping):
            await w.until_slices(lambda found: len(found) == 1)
        assert await w.slices() == ()


async def test_health_becomes_a_taint_that_clears_again() -> None:
    """Slices show it to everybody, and a stream to the node: complete lists, unknown for what nothing is known of."""
    driver = SickProbe()
    async with world() as w, w.plugin(driver):
        found = await w.kubelet.registered(NAME)
        assert "v1alpha1.DRAResourceHealth" in found.client.info.versions
        driver.news.put_nowait([Health(device="probe-0", healthy=False, message="too hot")])
        (sick,) = await w.until_slices(lambda found: len(found) == 1)
        taints = {device.name: device.taints for device in sick.spec.devices or ()}
        (taint,) = taints.pop("probe-0")
        assert (taint.key, taint.effect) == (f"{NAME}/unhealthy", "NoSchedule")
        assert not any(taints.values())
        async with aclosing(w.kubelet.health(NAME)) as stream:
            reports = await anext(stream)
            assert [(r.device, r.state, r.message) for r in reports[:2]] == [
                ("probe-0", HealthState.UNHEALTHY, "too hot"),
                ("probe-1", HealthState.UNKNOWN, ""),
            ]
            driver.news.put_nowait([Health(device="probe-0", healthy=True)])
            reports = await anext(stream)
            assert reports[0].state is HealthState.HEALTHY
        (well,) = await w.until_slices(lambda found: not found[0].spec.devices[0].taints)
        assert well.spec.pool.generation == sick.spec.pool.generation


async def test_a_driver_that_is_started_again_does_not_clear_taints_before_it_knows() -> None:
    """The device that was broken may still be."""
    async with world() as w:
        first = SickProbe()
        async with w.plugin(first):
            first.news.put_nowait([Health(device="probe-0", healthy=False)])
            (sick,) = await w.until_slices(lambda found: len(found) == 1)
        await w.kubelet.deregistered(NAME)
        second = SickProbe()
        async with w.plugin(second) as plugin:
            claim = await w.claim("c", "probe-1")
            assert isinstance(await w.kubelet.prepare(NAME, claim), Ready)
            assert await w.slices() == (sick,)
            assert not plugin.health.is_known
            second.news.put_nowait([])
            await w.until_slices(lambda found: not found[0].spec.devices[0].taints)


class Network(Probe):
    """Has something to say about its devices."""

    async def prepare(self, claim: Claim) -> Prepared:
        ready = Condition(type_="Ready", status="True", reason="Up", message="")
        return Prepared(
            devices=[
                PreparedDevice(
                    device=each,
                    conditions=[ready],
                    data={"speed": 100},
                    network=NetworkDeviceData(interface_name="net1", ips=("10.0.0.1/24",)),
                )
                for each in claim.devices
            ]
        )


async def test_what_is_known_of_devices_is_in_the_status_of_the_claim() -> None:
    """Conditions, data and how the network is set up; a device without edits has no CDI id."""
    async with world() as w, w.plugin(Network()):
        claim = await w.claim("c", "probe-0")
        answer = await w.kubelet.prepare(NAME, claim)
        assert isinstance(answer, Ready)
        assert answer.devices[0].cdi_ids == ()
        (status,) = (await w.cluster.client.get(RESOURCE_CLAIMS, "c", "default")).status.devices
        assert (status.driver, status.pool, status.device) == (NAME, NODE, "probe-0")
        assert [(c.type_, c.status) for c in status.conditions] == [("Ready", "True")]
        assert status.data == {"speed": 100}
        assert status.network_data == NetworkDeviceData(interface_name="net1", ips=("10.0.0.1/24",))


async def test_claims_that_are_gone_are_given_back_at_the_next_start() -> None:
    """Whoever should have asked for it may be gone too."""
    driver = Probe()
    async with world() as w:
        async with w.plugin(Probe()):
            claim = await w.claim("c", "probe-0")
            assert isinstance(await w.kubelet.prepare(NAME, claim), Ready)
            await w.cluster.remove_claim("c")
        await w.kubelet.deregistered(NAME)
        async with w.plugin(driver) as plugin:
            other = await w.claim("other", "probe-0")
            await plugin.release_gone()
            assert isinstance(await w.kubelet.prepare(NAME, other), Ready)
            text = generate_latest(plugin.metrics.registry).decode()
            assert f'drayman_driver_claims_prepared{{driver="{NAME}"}} 1.0' in text
            assert 'operation="prepare"' in text
    assert driver.calls == [("unprepare", "c"), ("prepare", "other")]


class Slow(Probe):
    """Takes until it is told to undo something."""

    def __init__(self) -> None:
        super().__init__()
        self.undoing, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def unprepare(self, claim: Claim) -> None:
        self.undoing.set()
        await self.may_go_on.wait()
        await super().unprepare(claim)


async def test_what_is_given_back_is_given_back_also_if_the_driver_ends_meanwhile() -> None:
    """Undoing that is broken off would leave a device half undone, with nobody to ask for the rest."""
    driver = Slow()
    async with world() as w:
        async with w.plugin(driver) as plugin:
            claim = await w.claim("c", "probe-0")
            assert isinstance(await w.kubelet.prepare(NAME, claim), Ready)
            await w.cluster.remove_claim("c")
            release = asyncio.create_task(plugin.release_gone())
            await driver.undoing.wait()
            release.cancel()
            await asyncio.gather(release, return_exceptions=True)
            driver.may_go_on.set()
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]
        assert list((plugin.folder / "claims").iterdir()) == []


class Recovering(Probe):
    """Looks at its hardware for as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.recovering, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def recover(self, claims: Sequence[Claim]) -> None:
        self.calls += [("recover", claim.name) for claim in claims]
        self.recovering.set()
        await self.may_go_on.wait()
        self.calls.append(("recovered", ""))


async def test_a_driver_that_recovers_knows_of_every_claim() -> None:
    """What another instance begins with meanwhile would look to it as if nobody had it."""
    old, new = Probe(), Recovering()
    old.calls = new.calls
    async with world() as w, w.plugin(old, instance="old"):

        async def update() -> None:
            async with w.plugin(new, instance="new"):
                pass

        known, late = await w.claim("known", "probe-0"), await w.claim("late", "probe-1")
        assert isinstance(await w.kubelet.prepare(NAME, known), Ready)
        updating = asyncio.create_task(update())
        await new.recovering.wait()
        preparing = asyncio.create_task(w.kubelet.prepare(NAME, late))
        done, _ = await asyncio.wait([preparing], timeout=0.3)
        assert not done
        new.may_go_on.set()
        assert isinstance(await preparing, Ready)
        await updating
    assert new.calls == [
        ("prepare", "known"), ("recover", "known"), ("recovered", ""), ("prepare", "late"),
    ]  # fmt: skip


async def test_a_driver_must_have_a_name_that_kubernetes_accepts() -> None:
    """Before it is served under a name that nobody can use."""

    class Nameless(Probe):
        name = "Not A Name"

    async with world() as w:
        with pytest.raises(KitError, match="'Not A Name' cannot name a driver"):
            Plugin(Nameless(), w.cluster.client, w.kubelet.options())


class Part(ApiStruct):
    sizes: tuple[str, ...] = ()
    names: dict[str, str] = {}


class Good(Config):
    part: Part | None = None
    parts: tuple[Part, ...] = ()
    anything: Json = None
    wide: Int64 = 1


class Tables(Config):
    tables: list[dict] = []


class Either(Config):
    size: int | str = 1


class Inner(ApiStruct):
    rate: float = 1.0


class Nested(Config):
    inner: Inner | None = None


class Needed(Config):
    size: int


@pytest.mark.parametrize(
    ("type_", "problem"),
    [
        (Tables, "Tables: tables: no JSON shape for list[dict]"),
        (Either, "Either: size: no JSON shape for int | str"),
        (Nested, "Nested: inner: no JSON shape for <class 'float'>"),
        (Needed, "Needed: size: has no default"),
    ],
)
async def test_a_driver_must_have_configurations_that_can_be_read(
    type_: type[Config], problem: str
) -> None:
    """Before each claim that has parameters fails; the class and the field are named."""

    class Configured(Probe):
        configs = (Good, type_)

    async with world() as w:
        with pytest.raises(KitError) as caught:
            Plugin(Configured(), w.cluster.client, w.kubelet.options())
    assert f"driver {NAME}: no configuration can be read into {problem}" in str(caught.value)
