"""`drayman allocate`: solve recorded allocation problems and write one line per answer."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Final

import click

from drayman.cli import files
from drayman.cli.errors import UserError
from drayman.cli.options import results_option
from drayman.cli.output import to_stderr

if TYPE_CHECKING:
    from drayman.simulate.problems import Problem

_GZIP: Final = b"\x1f\x8b"
_MOST_REMARKS: Final = 20

_EPILOG: Final = """\b
Examples:
  drayman allocate --problems fuzz.jsonl --results results.jsonl
  drayman allocate --problems table.json.gz --results - --policy best
  zcat fuzz.jsonl.gz | drayman allocate --problems - --results -

A result line has the name of the problem, the outcome (allocated,
unallocatable, error or timeout), the allocation results, the error and its
scope, the steps and the time of the search in microseconds (elapsed_us:
inventory built and selectors compiled; cold_us: from JSON).
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--problems",
    required=True,
    type=files.PATH,
    metavar="FILE",
    help="A .json array or .jsonl, also .gz; - for stdin.",
)
@results_option
@click.option(
    "--policy",
    type=click.Choice(["first-fit", "best"]),
    default="first-fit",
    show_default=True,
    help="Upstream's order, or the best aligned and least fragmenting choice.",
)
@click.option(
    "--max-steps", type=click.IntRange(min=1), metavar="N", help="Give up after this many steps."
)
def allocate(problems: str, results: str, policy: str, max_steps: int | None) -> None:
    """Allocate devices for recorded problems.

    Reads problems (a node, classes, slices, claims, what is in use) and writes one JSON line per problem. Bad input is an
    error before anything is written.
    """
    from drayman.allocator import Policy
    from drayman.cli.progress import tracked
    from drayman.simulate.problems import solve

    files.refuse_overwriting(results, problems)
    decoded = _decode(problems)
    chosen = Policy(policy)
    outcomes: Counter[str] = Counter()
    times: list[int] = []
    with files.writing(results) as out:
        for problem in tracked(decoded, "allocating"):
            line = solve(problem, chosen, max_steps).to_line()
            out.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            outcomes[line["outcome"]] += 1
            times.append(line["elapsed_us"])
    to_stderr(_summary(outcomes, times))


def _decode(path: str) -> list[Problem]:
    from drayman.simulate.problems import ProblemError, decode_problems

    data = files.read(path)
    name = _stream_name(data) if path == files.STANDARD else files.display_name(path)
    remarks: list[str] = []
    try:
        decoded = list(decode_problems(name, data, remarks.append))
    except ProblemError as error:
        raise UserError(str(error)) from error
    for remark in remarks[:_MOST_REMARKS]:
        to_stderr(f"warning: {remark}")
    if len(remarks) > _MOST_REMARKS:
        to_stderr(f"warning: and {len(remarks) - _MOST_REMARKS} more like these")
    return decoded


def _stream_name(data: bytes) -> str:
    """A name for standard input whose extension says what is in it, as a file's does."""
    if data.startswith(_GZIP):
        return "<stdin>.jsonl.gz"
    is_array = data.removeprefix(BOM_UTF8).lstrip().startswith(b"[")
    return "<stdin>.json" if is_array else "<stdin>"


def _summary(outcomes: Counter[str], times: list[int]) -> str:
    if not times:
        return "no problems"
    words = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    typical, most = median(times) / 1000, max(times) / 1000
    count = "1 problem" if len(times) == 1 else f"{len(times)} problems"
    return f"{count}: {words}; search {typical:.2f} ms median, {most:.2f} ms at most"
