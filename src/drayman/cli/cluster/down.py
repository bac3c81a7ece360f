"""`drayman down`, `drayman status`, `drayman kubeconfig`: about an instance that runs in another process."""

from __future__ import annotations

import signal
import time
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any, Final

import click

from drayman.apiserver.instance.folder import Folder, Record, is_alive
from drayman.cli.cluster.health import problem
from drayman.cli.connecting import Where, talk
from drayman.cli.errors import UserError, in_options
from drayman.cli.options import SECONDS, data_dir_option
from drayman.cli.output import print_data, print_verbatim, to_stderr, to_stdout
from drayman.node.pinned import pinned
from drayman.questions.errors import QuestionError
from drayman.questions.schedulers import NO_SCHEDULER, NONE_RUNS
from drayman.questions.which_cluster import EMBEDDED, folder_of

_POLL_S: Final = 0.05


def _running(folder: Folder) -> Record:
    record = folder.running()
    if record is None:
        where = "" if folder == folder_of(None) else f" --data-dir {quote(str(folder.path))}"
        raise UserError(f"nothing runs on {folder.path}; start it with: drayman up{where}")
    return record


@click.command(
    epilog="\b\nExamples:\n  drayman down\n  drayman down --data-dir /srv/drayman --timeout 60\n"
)
@data_dir_option
@click.option(
    "--timeout",
    type=SECONDS,
    default=15.0,
    show_default=True,
    help="Seconds to wait for it to stop.",
)
def down(data_dir: Path | None, timeout: float) -> None:
    """Stop the cluster that runs on a data directory.

    Its state stays, and the next `drayman up` on that directory continues with it. To start empty, name another directory with
    --data-dir, or delete this one first; `drayman status` shows which it is.
    """
    folder = folder_of(data_dir)
    record = folder.running()
    if record is None:
        raise UserError(f"nothing runs on {folder.path}")
    try:
        with pinned(record.pid) as process:
            if folder.running() == record:
                process.send(signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError as error:
        raise UserError(f"process {record.pid} belongs to another user") from error
    deadline = time.monotonic() + timeout
    while is_alive(record.pid):
        if time.monotonic() > deadline:
            raise UserError(f"process {record.pid} still runs after {timeout:g} s")
        time.sleep(_POLL_S)
    to_stdout(f"stopped process {record.pid}, which served {record.url}", wraps=True)
    to_stdout(f"state kept in {folder.path}", wraps=True)


@click.command(
    short_help="Say whether a cluster runs, where, and whether it is well.",
    epilog="\b\nExamples:\n  drayman status\n  drayman status -o json\n",
)
@data_dir_option
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text")
def status(data_dir: Path | None, output: str) -> None:
    """Say whether a cluster runs on a data directory, where, and whether it is well. Exit status 1 if none does."""
    folder = folder_of(data_dir)
    record = folder.running()
    wrong = "" if record is None else _wrong(folder, record)
    schedulers = "" if record is None or wrong else _schedulers(record)
    if output != "text":
        data = {"running": record is not None, "dataDir": str(folder.path)}
        print_data(
            {**data, **(_data(record, wrong, schedulers) if record is not None else {})}, output
        )
        raise SystemExit(0 if record is not None else 1)
    record = _running(folder)
    to_stdout(f"cluster         {EMBEDDED} ({record.url})", wraps=True)
    to_stdout(f"process         {record.pid}, since {record.started}", wraps=True)
    to_stdout(f"state           {folder.path if record.durable else 'in memory only'}", wraps=True)
    to_stdout(f"kubeconfig      {record.kubeconfig}", wraps=True)
    if schedulers:
        to_stdout(f"scheduler       {schedulers}", wraps=True)
    to_stdout(f"ready           {wrong or _ready(schedulers)}", wraps=True)
    _note_other_cluster(record)


def _wrong(folder: Folder, record: Record) -> str:
    """Why the cluster is not ready; empty if it is."""
    if not record.ready:
        return f"not yet: {record.progress}"
    found = problem(record.url, folder.certificates / "ca.crt")
    return f"no: {found}" if found else ""


def _schedulers(record: Record) -> str:
    """The processes that schedule pods, in words: as the cluster records it of its own scheduler, or by the Leases of others."""
    if record.scheduler_names:
        return record.scheduler
    from drayman.questions.schedulers import read_leases, schedulers_in_words

    leases = talk(Where(kubeconfig=Path(record.kubeconfig)), read_leases)
    return schedulers_in_words(leases, time.time())


def _ready(schedulers: str) -> str:
    return f"yes, but {NO_SCHEDULER}" if schedulers == NONE_RUNS else "yes"


def _note_other_cluster(record: Record) -> None:
    """Say so where the environment names another cluster: other commands do not talk to the one that was asked about."""
    try:
        meant = Where().connection()
    except QuestionError as error:
        to_stderr(f"note: other commands do not talk to it: {in_options(error)}")
        return
    if meant.server != record.url:
        to_stderr(f"note: other commands talk to {meant}")


@click.command(
    epilog="\b\nExamples:\n  export KUBECONFIG=$(drayman kubeconfig --path)\n  drayman kubeconfig > ~/.kube/drayman\n"
)
@data_dir_option
@click.option(
    "--path", "only_path", is_flag=True, help="Print where the file is instead of the file."
)
def kubeconfig(data_dir: Path | None, only_path: bool) -> None:
    """Print the kubeconfig of the running cluster. It holds the administrator's token: keep it to yourself."""
    record = _running(folder_of(data_dir))
    if only_path:
        print_verbatim(record.kubeconfig)
        return
    try:
        print_verbatim(Path(record.kubeconfig).read_text(), nl=False)
    except OSError as error:
        raise UserError(f"{record.kubeconfig}: {error.strerror}") from error


def _data(record: Record, wrong: str, schedulers: str) -> dict[str, Any]:
    problem = wrong.partition(": ")[2] or (NO_SCHEDULER if schedulers == NONE_RUNS else "")
    named = "" if schedulers == NONE_RUNS else schedulers
    data = asdict(record) | {"ready": not wrong, "problem": problem, "scheduler": named}
    names = data.pop("scheduler_names")
    return {**data, "schedulerNames": names.split(",") if names else []}
