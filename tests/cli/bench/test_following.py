"""`drayman bench schedule` on a server that does not keep its watches open."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aiohttp import ClientSession, ClientTimeout, web
from click.testing import CliRunner

from apiserver.e2e.driving import PATIENCE_S, Server, running
from drayman.cli.main import cli
from drayman.cluster.kube.transport import DroppingConnector

EXPIRED = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Expired",
        "message": "too old resource version",
        "code": 410,
    },
}


@dataclass(slots=True)
class Impatient:
    """Stands before a server, and ends every watch after its first event; every third without one, as expired."""

    server: Server
    url: str = ""
    watches: int = 0
    _ready: threading.Event = field(default_factory=threading.Event)

    async def serve(self, until: asyncio.Event) -> None:
        token = json.loads(self.server.kubeconfig.read_bytes())["users"][0]["user"]["token"]
        headers = {"Authorization": f"Bearer {token}"}
        # A request may be given up at any time, and its connection is not to outlive the event loop.
        timeout = ClientTimeout(PATIENCE_S)
        async with ClientSession(
            connector=DroppingConnector(), headers=headers, timeout=timeout
        ) as session:
            application = web.Application(client_max_size=1 << 24)
            handler = partial(self._pass_on, session)
            application.router.add_route("*", "/{path:.*}", handler)
            # A watch may wait for an event that never comes: it ends with whoever has asked for it.
            runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=1.0)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            self.url = f"http://{host}:{port}"
            self._ready.set()
            await until.wait()
            await runner.cleanup()

    def wait(self) -> None:
        assert self._ready.wait(PATIENCE_S)

    async def _pass_on(self, session: ClientSession, request: web.Request) -> web.StreamResponse:
        async with session.request(
            request.method,
            f"{self.server.url}{request.path_qs}",
            data=await request.read(),
            headers={"Content-Type": request.content_type},
            ssl=False,
        ) as answer:
            if "watch" not in request.query:
                body = await answer.read()
                return web.Response(
                    status=answer.status, body=body, content_type="application/json"
                )
            self.watches += 1
            response = web.StreamResponse()
            await response.prepare(request)
            expired = json.dumps(EXPIRED).encode() + b"\n"
            line = expired if self.watches % 3 == 0 else await answer.content.readline()
            await response.write(line)
            return response


@contextmanager
def standing_before(server: Server) -> Iterator[Impatient]:
    found = Impatient(server)
    loop = asyncio.new_event_loop()
    until = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(found.serve(until)))
    thread.start()
    try:
        found.wait()
        yield found
    finally:
        loop.call_soon_threadsafe(until.set)
        thread.join(PATIENCE_S)
        loop.close()


def test_a_watch_that_ends_is_resumed(tmp_path: Path) -> None:
    """Every pod is seen to be bound, whether the server ends the watch or has forgotten where it was."""
    with running(tmp_path / "server", "--ephemeral") as server, standing_before(server) as between:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": between.url}}],
            "contexts": [{"name": "short", "context": {"cluster": "c"}}],
            "current-context": "short",
        }
        path = tmp_path / "config"
        path.write_text(json.dumps(config))
        words = ["bench", "schedule", "--workload", "SchedulingWithResourceClaimTemplate/fast"]
        words += ["--backend", "kubeconfig", "--kubeconfig", str(path), "--json"]
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == 0, result.output
        figures = json.loads(result.stdout)
    assert figures["pods"] == 10
    assert figures["cluster"] == {"name": "context short", "server": between.url}
    assert between.watches >= 3  # the first was ended, the third was expired
