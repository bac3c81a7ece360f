"""`drayman explain --watch`: each answer that differs from the one before, drawn over it or after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import partial

from drayman.api import codec
from drayman.cli.explain.drawing import Drawing
from drayman.cli.output import can_redraw, console, print_data, refuse_unread, to_stdout
from drayman.cli.worlds import unobtrusively
from drayman.cluster import Client
from drayman.explain.answer import Explanation
from drayman.placement.prices import NO_PRICES, PriceTable
from drayman.questions.following import follow
from drayman.questions.subjects import Target

Show = Callable[[Explanation, float], None]


async def show_each(
    client: Client,
    subject: Target,
    namespace: str,
    output_format: str | None,
    prices: PriceTable = NO_PRICES,
) -> None:
    """Show the explanation, and each that differs from the one before. Raises QuestionError once the object is gone."""
    quietly = partial(unobtrusively, again=True)
    answers = follow(
        client, subject, namespace, heartbeat=refuse_unread, working=quietly, prices=prices
    )
    with _showing(output_format) as show:
        async with aclosing(answers):
            async for found, now in answers:
                show(found, now)


@contextmanager
def _showing(output_format: str | None) -> Iterator[Show]:
    """Where explanations go: drawn over each other on a terminal if they fit, each below the one before elsewhere."""
    if output_format:
        yield lambda found, _: _print_document(found, output_format)
        return
    out = console()
    if not can_redraw(out):
        is_first = True

        def print_one(found: Explanation, now: float) -> None:
            nonlocal is_first
            if not is_first:
                out.print()
            is_first = False
            out.print(Drawing(found, now))

        yield print_one
        return
    from drayman.cli.frames import Frames

    with Frames(out) as frames:
        yield lambda found, now: frames.show(Drawing(found, now))


def _print_document(found: Explanation, output_format: str) -> None:
    if output_format == "yaml":
        to_stdout("---")
    print_data(codec.to_dict(found), output_format)
