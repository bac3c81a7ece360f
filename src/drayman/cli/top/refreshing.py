"""Shows the state of a cluster's devices, once or repeatedly, headed by which cluster it is.

On a terminal that supports it, `--watch` redraws in place what fits on the screen. Otherwise each picture that differs from the last is
printed, with a blank line between, and `-o` prints a document for each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import click

from drayman.cli import files
from drayman.cli.connecting import Where, talk
from drayman.cli.errors import UserError
from drayman.cli.output import (
    Data,
    can_redraw,
    console,
    print_data,
    refuse_unread,
    to_stderr,
    to_stdout,
)
from drayman.cli.worlds import unobtrusively
from drayman.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from drayman.cli.frames import Frames
    from drayman.cluster import HttpClient
    from drayman.questions.devices.reading import Reading

PAUSE_S: Final = 2.0
"""Between two readings of the cluster; longer if reading takes longer, so that a large cluster is not kept busy."""

F = TypeVar("F", bound=Callable[..., Any])


class Picture(Protocol):
    """What a command shows of a reading."""

    def data(self) -> Mapping[str, Any]:
        """The same as data."""
        ...

    def drawn(self, out: Console) -> RenderableType:
        """For a terminal."""
        ...

    def plain(self, out: Console) -> str:
        """For a pipe or a file."""
        ...


@dataclass(frozen=True, slots=True)
class Nothing:
    """The picture of a list without rows."""

    name: str
    sentence: str

    def data(self) -> Mapping[str, Any]:
        return {self.name: []}

    def drawn(self, out: Console) -> RenderableType:
        from rich.text import Text

        return Text(printable(self.sentence))

    def plain(self, out: Console) -> str:
        return printable(self.sentence)


@dataclass(frozen=True, slots=True)
class Asked:
    """Where to look, and how to show it."""

    where: Where
    output_format: str | None = None
    watch: bool = False
    namespace: str | None = None
    needs_claims: bool = False
    """Whether there is nothing to show without them."""
    with_pods: bool = False
    with_queues: bool = False
    remarks: Callable[[Reading], Iterable[str]] = lambda _: ()
    """What else there is to say about a reading."""
    snapshot: str | None = None
    """A file with a cluster, in place of one that runs."""


def watch_option(function: F) -> F:
    """The option `--watch`, as `watch`."""
    return click.option("-w", "--watch", is_flag=True, help="Keep showing it as it changes.")(
        function
    )


def show(asked: Asked, picture: Callable[[Reading], Picture]) -> None:
    """Read the cluster and show it, with `--watch` until interrupted. Raises UserError."""
    show_at(asked, lambda reading, _: picture(reading))


def show_at(asked: Asked, picture: Callable[[Reading, float], Picture]) -> None:
    """The same for a picture that depends on the time of the reading, in seconds."""
    with ExitStack() as until:
        if asked.snapshot is not None:
            _show_saved(asked, asked.snapshot, picture, until)
            return

        async def work(client: HttpClient) -> None:
            from drayman.questions.devices.reading import read

            connection = client.connection
            named = {"name": connection.name, "server": connection.server}
            screen = _Screen(asked, str(connection), named, until)
            while True:
                begun = time.monotonic()
                with unobtrusively(again=asked.watch):
                    reading = await read(
                        client,
                        asked.namespace,
                        needs_claims=asked.needs_claims,
                        with_pods=asked.with_pods,
                        with_queues=asked.with_queues,
                    )
                    remarks = (*reading.remarks, *asked.remarks(reading))
                    screen.show(picture(reading, time.time()), remarks)
                if not asked.watch:
                    return
                await asyncio.sleep(max(PAUSE_S, time.monotonic() - begun))
                refuse_unread()

        talk(asked.where, work)


def _show_saved(
    asked: Asked, snapshot: str, picture: Callable[[Reading, float], Picture], until: ExitStack
) -> None:
    """The picture of a cluster in a file, at the time at which it was saved."""
    from drayman.questions.devices.reading import reading_of_world
    from drayman.questions.worlds import read_file

    if asked.watch:
        raise click.UsageError("--watch follows a cluster that runs, not one in a file.")
    if asked.where.kubeconfig is not None or asked.where.context:
        raise UserError("--snapshot already names a cluster: leave out --kubeconfig and --context")
    name = files.display_name(snapshot)
    data = files.read(snapshot)
    with unobtrusively():
        world = read_file(name, data)
        reading = reading_of_world(world)
    screen = _Screen(asked, f"as saved in {name}", {"snapshot": name}, until)
    screen.show(picture(reading, world.now), (*reading.remarks, *asked.remarks(reading)))


def as_text(picture: RenderableType, out: Console) -> str:
    """What a console would show of a picture, without trailing spaces."""
    with out.capture() as written:
        out.print(picture)
    return "\n".join(line.rstrip() for line in written.get().splitlines())


class _Screen:
    """Where pictures go."""

    def __init__(
        self, asked: Asked, title: str, named: Mapping[str, str], until: ExitStack
    ) -> None:
        """`title` is the cluster for people, `named` the same as data."""
        self._asked = asked
        self._title = title
        self._named = named
        self._out = console()
        self._frames: Frames | None = None
        self._until = until
        self._remarks: tuple[str, ...] = ()
        self._latest: Data | None = None
        self._shown = 0

    def show(self, picture: Picture, remarks: tuple[str, ...]) -> None:
        if remarks != self._remarks:
            self._remarks = remarks
            for remark in remarks:
                to_stderr(f"note: {remark}")
        if self._asked.output_format:
            notes = {"notes": list(remarks)} if remarks else {}
            where = {"cluster": dict(self._named)}
            self._show_data({**where, **picture.data(), **notes}, self._asked.output_format)
        elif isinstance(picture, Nothing) and not self._asked.watch:
            to_stderr(picture.plain(self._out))
        elif not self._out.is_terminal:
            self._show_text(picture)
        elif self._asked.watch and can_redraw(self._out):
            self._redraw(picture.drawn(self._out), is_news=self._is_news(picture.data()))
        elif not self._asked.watch or self._is_news(picture.data()):
            if self._shown > 1:
                self._out.print()
            self._out.print(self._headed(picture.drawn(self._out)))

    @property
    def _heading(self) -> str:
        return printable(f"cluster: {self._title}")

    def _headed(self, picture: RenderableType) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        return Group(Text(self._heading, style="dim", overflow="fold"), picture)

    def _show_data(self, data: Data, output_format: str) -> None:
        if self._is_news(data):
            if output_format == "yaml" and self._shown > 1:
                to_stdout("---")
            print_data(data, output_format)

    def _show_text(self, picture: Picture) -> None:
        if not self._asked.watch or self._is_news(picture.data()):
            to_stdout("" if self._shown > 1 else self._heading)
            to_stdout(picture.plain(self._out))

    def _is_news(self, data: Data) -> bool:
        """Whether it differs from what was shown last. Ages do not count, and are not in the data."""
        if data == self._latest:
            return False
        self._latest = data
        self._shown += 1
        return True

    def _redraw(self, picture: RenderableType, *, is_news: bool) -> None:
        from drayman.cli.frames import Frames

        if self._frames is None:
            self._frames = self._until.enter_context(Frames(self._out))
        self._frames.show(self._headed(picture), is_news=is_news)
