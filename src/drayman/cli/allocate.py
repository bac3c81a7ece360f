"""`drayman allocate`: solve recorded allocation problems and write one line per answer."""

from __future__ import annotations

import json
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Final

import click

from drayman.cli import files
from drayman.cli.errors import UserError

if TYPE_CHECKING:
    from drayman.simulate.problems import Problem, Solution

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
    metavar="FILE",
    help="A .json array or .jsonl, also .gz; - for stdin.",
)
@click.option("--results", required=True, metavar="FILE", help="Where to write; - for stdout.")
@click.option(
    "--policy",
    type=click.Choice(["first-fit", "best"]),
    default="first-fit",
    show_default=True,
    help="Upstream's order, or the best aligned and least fragmenting choice.",
)
@click.option(
    "--max-steps", type=click.IntRange(min=1), metavar="N", help="Give up after so many steps."
)
def allocate(problems: str, results: str, policy: str, max_steps: int | None) -> None:
    """Allocate devices for recorded problems.

    Reads problems (a node, classes, slices, claims, what is in use) and writes one JSON line per problem. Bad input is an
    error before anything is written.
    """
    from drayman.allocator import Policy
    from drayman.cli.progress import tracked
    from drayman.simulate.problems import solve

    decoded = _decode(problems)
    chosen = Policy(policy)
    solutions: list[Solution] = []
    with files.writing(results) as out:
        for problem in tracked(decoded, "allocating"):
            solution = solve(problem, chosen, max_steps)
            out.write(json.dumps(solution.to_line(), separators=(",", ":")).encode() + b"\n")
            solutions.append(solution)
    click.echo(_summary(solutions), err=True)


def _decode(path: str) -> list[Problem]:
    from drayman.simulate.problems import ProblemError, decode_problems

    data = files.read(path)
    try:
        return list(decode_problems(files.display_name(path), data))
    except ProblemError as error:
        raise UserError(str(error)) from error


def _summary(solutions: list[Solution]) -> str:
    outcomes = Counter(solution.outcome for solution in solutions)
    text = f"{len(solutions)} problems"
    if not solutions:
        return text
    text += ": " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    times = [solution.elapsed_us for solution in solutions]
    return (
        f"{text}; search {median(times) / 1000:.2f} ms median, {max(times) / 1000:.2f} ms at most"
    )
