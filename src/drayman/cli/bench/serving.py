"""The server that is measured: one of our own in a separate process, or whatever a kubeconfig names."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from drayman.apiserver.instance.folder import Folder
from drayman.cli.bench.wire import Address
from drayman.cli.connecting import Where
from drayman.cli.errors import UserError
from drayman.cluster.kube.connection import Connection, tls_context

_READY_WITHIN_S: Final = 30.0
_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Server:
    connection: Connection
    address: Address
    pid: int | None = None
    """Of a server of our own."""

    def peak_memory(self) -> int | None:
        """The peak memory of the server, in bytes; None where that is not known."""
        if self.pid is None:
            return None
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return None
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return None

    def cpu_seconds(self) -> float | None:
        """The processor time that the server has used so far; None where that is not known."""
        if self.pid is None:
            return None
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return None
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def embedded(extra: tuple[str, ...] = ()) -> AsyncIterator[Server]:
    """A durable server with scheduler and controllers, until the context is left. Its data goes with it."""
    with tempfile.TemporaryDirectory(prefix="drayman-bench-") as folder:
        data = Path(folder) / "data"
        kubeconfig = Path(folder) / "kubeconfig"
        log = Path(folder) / "server.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "drayman",
                "up",
                "--port",
                "0",
                "--data-dir",
                str(data),
                "--kubeconfig",
                str(kubeconfig),
                *extra,
                stdout=output,
                stderr=output,
            )
        try:
            await _ready(process, Folder(data), log)
            connection = Where(kubeconfig).connection()
            yield Server(connection, await address_of(connection), process.pid)
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()


@asynccontextmanager
async def configured(configuration: Mapping[str, Any] | None) -> AsyncIterator[Server]:
    """A server of our own whose queues work by a configuration of Kueue's."""
    if configuration is None:
        async with embedded() as server:
            yield server
        return
    with tempfile.NamedTemporaryFile(prefix="drayman-bench-", suffix=".yaml") as file:
        file.write(json.dumps(configuration).encode())
        file.flush()
        async with embedded(("--queue-config", file.name)) as server:
            yield server


async def _ready(process: asyncio.subprocess.Process, folder: Folder, log: Path) -> None:
    deadline = asyncio.get_running_loop().time() + _READY_WITHIN_S
    while (record := folder.running()) is None or not record.ready:
        if process.returncode is not None:
            raise UserError(f"the server has ended: {log.read_text(errors='replace').strip()}")
        if asyncio.get_running_loop().time() > deadline:
            raise UserError(f"the server was not ready within {_READY_WITHIN_S:g} s")
        await asyncio.sleep(_POLL_S)


async def address_of(connection: Connection) -> Address:
    """The address and identity of a connection. Raises UserError."""
    from drayman.cluster.errors import ConfigurationError, CredentialsError

    try:
        credential = await connection.credentials.current()
        tls = tls_context(connection.trust, credential.certificate) if connection.uses_tls else None
    except (ConfigurationError, CredentialsError) as error:
        raise UserError(str(error)) from error
    headers = (("Authorization", credential.authorization),) if credential.authorization else ()
    return Address(connection.server, tls, headers)
