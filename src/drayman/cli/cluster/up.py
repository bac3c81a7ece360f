"""`drayman up`: run the embedded cluster."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from drayman.apiserver.instance.folder import Folder, FolderError, Record
from drayman.cli.cluster.options import data_dir_option, folder_of
from drayman.cli.errors import UserError, reason

_READY_WITHIN_S: Final = 20.0
_POLL_S: Final = 0.05

_EPILOG: Final = """\b
Examples:
  drayman up                            serve until Ctrl-C, state is kept
  drayman up --ephemeral --port 0       keep nothing, any free port: for tests
  drayman up --detach                   go on in the background
  export KUBECONFIG=$(drayman kubeconfig --path)
  kubectl get namespaces
  drayman down                          end it; state is kept
"""


@click.command(epilog=_EPILOG)
@data_dir_option
@click.option("--ephemeral", is_flag=True, help="Keep everything in memory and nothing on disk.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--kubeconfig",
    "kubeconfig_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write the kubeconfig. Default: kubeconfig in the data directory.",
)
@click.option(
    "--expose",
    is_flag=True,
    help="Allow an address other machines can reach. Whoever has the token in the kubeconfig"
    " can do everything there.",
)
@click.option(
    "--audit-log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Append a line of JSON for every request.",
)
@click.option("--no-controllers", is_flag=True, help="Serve the API alone.")
@click.option("--detach", is_flag=True, help="Return as soon as it is ready, and go on.")
def up(
    data_dir: Path | None,
    ephemeral: bool,
    host: str,
    port: int,
    kubeconfig_path: Path | None,
    expose: bool,
    audit_log: Path | None,
    no_controllers: bool,
    detach: bool,
) -> None:
    """Run a Kubernetes API in this process: no Docker, no etcd.

    State is kept in the data directory, and a kubeconfig is written there. Plain kubectl and every other Kubernetes client work against it.
    """
    if ephemeral and data_dir is not None:
        raise click.UsageError("--ephemeral keeps nothing, so it goes with no --data-dir")
    if detach:
        _detach(folder_of(data_dir), ephemeral)
        return
    with ExitStack() as stack:
        folder = folder_of(data_dir)
        if ephemeral:
            folder = Folder(
                Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drayman-")))
            )
        _prepare(folder)  # before the server is loaded, which takes longer than saying no
        from drayman.apiserver.instance import Options

        target = kubeconfig_path.absolute() if kubeconfig_path is not None else None
        options = Options(folder, not ephemeral, host, port, target, audit_log, not no_controllers)
        if not options.is_loopback and not expose:
            raise UserError(
                f"{host} can be reached by other machines, and whoever has the token can do everything;"
                " say --expose if that is meant"
            )
        asyncio.run(_serve(options))


def _prepare(folder: Folder) -> None:
    try:
        folder.prepare()
    except FolderError as error:
        raise UserError(str(error)) from error


async def _serve(options: object) -> None:
    from drayman.apiserver.instance import InstanceError, Options, start

    assert isinstance(options, Options)
    begun = time.monotonic()
    try:
        instance = await start(options)
    except InstanceError as error:
        raise UserError(str(error)) from error
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        state = str(options.folder.path) if options.durable else "in memory only"
        click.echo(f"Kubernetes API  {instance.url}  (ready in {time.monotonic() - begun:.1f} s)")
        click.echo(f"state           {state}")
        click.echo(f"kubeconfig      {instance.kubeconfig}")
        click.echo(f"try             kubectl --kubeconfig {instance.kubeconfig} get namespaces")
        sys.stdout.flush()
        await stop.wait()
    finally:
        await instance.stop()
    click.echo("stopped", err=True)


def _detach(folder: Folder, ephemeral: bool) -> None:
    """Start the same command without --detach in a session of its own, and wait until it answers."""
    if ephemeral:
        raise click.UsageError(
            "--detach needs a data directory to be found again by; leave --ephemeral out"
        )
    running = folder.running()
    if running is not None:
        raise UserError(
            f"{folder.path} is in use by process {running.pid}, which serves {running.url}"
        )
    arguments = [word for word in sys.argv[1:] if word != "--detach"]
    _prepare(folder)
    try:
        log = folder.log.open("ab")
    except OSError as error:
        raise UserError(f"{folder.log}: {reason(error)}") from error
    with log:
        child = subprocess.Popen(
            [sys.executable, "-m", "drayman", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    record = _wait_ready(folder, child)
    click.echo(f"Kubernetes API  {record.url}  (process {record.pid})")
    click.echo(f"kubeconfig      {record.kubeconfig}")
    click.echo(f"log             {folder.log}")


def _wait_ready(folder: Folder, child: subprocess.Popen[bytes]) -> Record:
    deadline = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < deadline:
        record = folder.running()
        if record is not None and record.pid == child.pid:
            return record
        if child.poll() is not None:
            lines = folder.log.read_text(errors="replace").strip().splitlines()
            why = lines[-1].removeprefix("error: ") if lines else f"exit status {child.returncode}"
            raise UserError(f"it did not start: {why}")
        time.sleep(_POLL_S)
    os.kill(child.pid, signal.SIGTERM)
    raise UserError(f"it did not become ready within {_READY_WITHIN_S:.0f} s; see {folder.log}")
