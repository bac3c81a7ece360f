"""The command: read the cluster, propose moves, and carry them out on demand."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Final

import click

from drayman.cli.completing import explained_kinds
from drayman.cli.connecting import Where, talk
from drayman.cli.errors import INTERRUPTED, UserError, no_answer
from drayman.cli.options import Seconds
from drayman.cli.output import console, format_option, print_data, to_stdout
from drayman.cli.worlds import load_world, unobtrusively, world_options
from drayman.questions.errors import NamingError
from drayman.questions.subjects import Target, parse_subject
from drayman.reasons.wording import and_list, counted

if TYPE_CHECKING:
    from drayman.cluster import HttpClient
    from drayman.placement.world import World
    from drayman.simulate.moving.report import Application, DefragReport

SOME_WAIT: Final = 1
"""The exit status where not everything gets room."""
_MOST_MOVES: Final = 32
_AT_ONCE: Final = 64

_EPILOG: Final = """\b
KIND is pod, podgroup, job, deployment (deploy), replicaset (rs) or
statefulset (sts).

\b
Examples:
  drayman defrag                        room for everything that waits
  drayman defrag --for pod/trainer      room for one pod
  drayman defrag --for podgroup/ring    room for pods that start together
  drayman defrag --for job/sweep -o json
  drayman defrag --snapshot cluster.yaml
  drayman defrag --for pod/trainer --apply --yes

Exit status: 0 everything has room, or would have after the moves; 1 something
has not; 2 there is no answer.
"""


@click.command(short_help="Propose moves of pods that make room for what waits.", epilog=_EPILOG)
@click.option(
    "--for",
    "beneficiary",
    metavar="KIND/NAME",
    shell_complete=explained_kinds,
    help="Make room for this. Default: for everything that waits and asks for devices.",
)
@click.option(
    "--max-moves",
    type=click.IntRange(1, 10_000),
    default=_MOST_MOVES,
    show_default=True,
    metavar="N",
    help="Move at most this many pods for one pod or gang.",
)
@click.option(
    "--apply/--dry-run",
    "applies",
    default=False,
    help="Carry the moves out, or only propose them, which is the default.",
)
@click.option("-y", "--yes", is_flag=True, help="With --apply: do not ask first.")
@click.option(
    "--parallel",
    "at_once",
    type=click.IntRange(1, 10_000),
    default=_AT_ONCE,
    show_default=True,
    metavar="N",
    help="With --apply: move at most this many pods at the same time.",
)
@click.option(
    "--timeout",
    type=Seconds(1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="With --apply: how long pods may take to be replaced.",
)
@click.option("--all", "all_steps", is_flag=True, help="List every step, however many there are.")
@format_option
@world_options
@click.pass_context
@no_answer()
def defrag(
    ctx: click.Context,
    beneficiary: str | None,
    max_moves: int,
    applies: bool,
    yes: bool,
    at_once: int,
    timeout: float,
    all_steps: bool,
    output_format: str | None,
    snapshot: str | None,
    namespace: str | None,
    where: Where,
) -> None:
    """Propose the cheapest moves of pods that make room for what waits, and carry them out with --apply.

    A pod is moved by evicting it: its controller makes another one, which begins anew. Each of them has a proven place, and the moves
    are listed in an order that works step by step. Pods without a controller, and pods that are protected, stay.

    --apply looks before each step whether the rest still works in the cluster as it is, and ends where it does not.
    """
    subject = None if beneficiary is None else subject_of(beneficiary)
    question = _Question(subject, max_moves, output_format, all_steps=all_steps)
    if applies and snapshot is not None:
        raise click.UsageError("--apply changes a cluster that runs, not one in a file.")
    if applies and not yes and not sys.stdin.isatty():
        raise click.UsageError(
            "--apply asks before it moves pods; where nobody can answer, add --yes."
        )

    async def work(client: HttpClient) -> DefragReport:
        from drayman.questions.defrag import read_for_moves

        scope = namespace or client.default_namespace
        world = await read_for_moves(client, subject, scope)
        report = question.asked(world, scope)
        if not applies:
            return report
        return await _applied(
            client, world, scope, question, report, yes=yes, at_once=at_once, timeout_s=timeout
        )

    if snapshot is not None:
        world, scope = load_world(snapshot, namespace, where)
        with unobtrusively():
            report = question.asked(world, scope)
    else:
        with unobtrusively():
            report = talk(where, work)
    if output_format or report.applied is None:
        question.show(report)
    ctx.exit(_status(report))


class _Question:
    """What is asked, and how it is shown."""

    def __init__(
        self, subject: Target | None, most: int, output_format: str | None, *, all_steps: bool
    ) -> None:
        self._subject = subject
        self._most = most
        self._all_steps = all_steps
        self.output_format = output_format

    def asked(self, world: World, namespace: str) -> DefragReport:
        from drayman.questions.defrag import defrag as proposed

        return proposed(world, self._subject, namespace, most=self._most)

    def show(self, report: DefragReport) -> None:
        if self.output_format:
            from drayman.api import codec

            print_data(codec.to_dict(report), self.output_format)
            return
        from drayman.cli.defrag.drawing import DefragDrawing

        subject = "" if self._subject is None else str(self._subject)
        console().print(DefragDrawing(report, subject, self._all_steps))


async def _applied(
    client: HttpClient,
    world: World,
    scope: str,
    question: _Question,
    report: DefragReport,
    *,
    yes: bool,
    at_once: int,
    timeout_s: float,
) -> DefragReport:
    """The proposal, carried out if it is wanted."""
    from msgspec.structs import replace

    from drayman.cli.defrag.applying import Applying
    from drayman.questions.followed_world import followed

    is_silent = question.output_format is not None
    if not is_silent:
        question.show(report)
    if not report.steps:
        return replace(report, applied=_nothing())
    if not yes and not click.confirm(f"Move {counted(report.cost.pods, 'pod')}?", err=is_silent):
        raise UserError("nothing was moved")
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stopping.set)
    async with followed(client, world, scope) as now:
        applying = Applying(
            client,
            now,
            at_once=at_once,
            timeout_s=timeout_s,
            say=(lambda _: None) if is_silent else to_stdout,
            stopping=stopping,
        )
        applied = await applying.carry_out(report.rooms)
    if not is_silent:
        to_stdout(_summary(applied))
    if stopping.is_set():
        raise click.exceptions.Exit(INTERRUPTED)
    return replace(report, applied=applied)


def _nothing() -> Application:
    from drayman.simulate.moving.report import Application

    return Application(moved=0)


def _summary(applied: Application) -> str:
    moved = counted(applied.moved, "pod")
    if applied.stopped:
        return f"stopped after {moved}: {applied.stopped}"
    return f"{moved} moved; {and_list(applied.started) or 'nothing'} started"


def _status(report: DefragReport) -> int:
    is_undone = report.applied is not None and bool(report.applied.stopped)
    return SOME_WAIT if is_undone or not report.fits else 0


def subject_of(text: str) -> Target:
    """What to make room for. Raises UsageError."""
    try:
        return parse_subject(text)
    except NamingError as error:
        raise click.UsageError(str(error)) from error
