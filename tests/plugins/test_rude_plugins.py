"""Plugins and files that make no sense: a node tells them off, or passes over them, and goes on with the others."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from drayman.drivers.kit import Plugin
from drayman.plugins.calling import PluginClient, chosen_version
from drayman.plugins.cdi.files import LARGEST, read_spec
from drayman.plugins.errors import CallError, CdiError, RegistrationError
from drayman.plugins.model import PLUGIN_TYPE, PluginInfo
from drayman.plugins.registry import Registry
from drayman.testing import FakeKubelet, TestCluster
from drivers.kit.probing import NAME, NODE, Probe
from patience import PATIENCE_S

NONSENSE = b"\xff" * 20


@pytest.fixture
def folder() -> Iterator[Path]:
    """Names of sockets are short."""
    with tempfile.TemporaryDirectory(prefix="rude") as name:
        yield Path(name)


class _Rude(grpc.GenericRpcHandler):
    """Answers every call, or begins every stream, with bytes that are no message."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        if details.method.endswith("NodeWatchResources"):
            return grpc.unary_stream_rpc_method_handler(self._stream)
        return grpc.unary_unary_rpc_method_handler(self._answer)

    async def _answer(self, _request: bytes, _context: object) -> bytes:
        return NONSENSE

    async def _stream(self, _request: bytes, context: grpc.aio.ServicerContext) -> None:
        await context.write(NONSENSE)


async def rude(path: Path) -> grpc.aio.Server:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Rude(),))
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    return server


async def test_a_plugin_that_talks_nonsense_keeps_no_other_from_being_found(folder: Path) -> None:
    """Whichever comes first."""
    async with (
        TestCluster(folder) as cluster,
        FakeKubelet(cluster.client, NODE, folder) as kubelet,
    ):
        await cluster.add_node(NODE)
        options = kubelet.options(NAME)
        options.registry_dir.mkdir(parents=True, exist_ok=True)
        server = await rude(options.registry_dir / "rude-reg.sock")
        registry = Registry(options.registry_dir, interval_s=0.01)
        async with registry, asyncio.timeout(PATIENCE_S), Plugin(Probe(), cluster.client, options):
            await registry.wait_until(lambda found: found.latest(NAME) is not None)
        await server.stop(None)


async def test_nonsense_is_the_plugins_error(folder: Path) -> None:
    """As if it had not answered, for calls and for reports about health."""
    server = await rude(folder / "dra.sock")
    info = PluginInfo(PLUGIN_TYPE, NAME, str(folder / "dra.sock"), ("v1.DRAPlugin",))
    client = PluginClient(info)
    with pytest.raises(CallError, match="makes no sense"):
        await client.prepare([])
    with pytest.raises(CallError, match="makes no sense"):
        async for _ in client.health():
            pass
    await client.close()
    await server.stop(None)


@pytest.mark.parametrize(
    "name", ["", "../x", "a b,spec.driver=c", "UPPER", "a" * 64, "x" * 3_000_000]
)
def test_names_that_no_driver_can_have_are_refused(name: str) -> None:
    """They would become parts of paths and of selectors."""
    info = PluginInfo(PLUGIN_TYPE, name, "/dra.sock", ("v1.DRAPlugin",))
    with pytest.raises(RegistrationError, match="cannot name a driver") as refused:
        chosen_version(info)
    assert len(str(refused.value)) < 1000


def test_a_file_that_would_block_is_not_opened_for_long(tmp_path: Path) -> None:
    """A pipe is no CDI file, and neither is one without an end."""
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(CdiError, match="no regular file"):
        read_spec(tmp_path / "pipe.json")
    with open(tmp_path / "large.json", "wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(CdiError, match="are the most"):
        read_spec(tmp_path / "large.json")
