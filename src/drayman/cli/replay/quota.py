"""`drayman replay quota`: recorded scenarios of Kueue's queues, decided by the engine of quota."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from drayman.cli import files
from drayman.cli.errors import UserError
from drayman.cli.output import to_stderr

if TYPE_CHECKING:
    from drayman.simulate.quota_replay.scenario import Scenario

_EPILOG: Final = """\b
Examples:
  drayman replay quota --scenarios scenarios.jsonl --results results.jsonl

A result line has the name of the scenario and a checkpoint for each `settle`:
the workloads with their status, flavors and usage, the queues, and what
happened since the checkpoint before.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--scenarios",
    required=True,
    type=files.PATH,
    metavar="FILE",
    help="A .jsonl of scenarios; - for stdin.",
)
@click.option(
    "--results",
    required=True,
    type=files.PATH,
    metavar="FILE",
    help="Where to write; - for stdout.",
)
def quota(scenarios: str, results: str) -> None:
    """Decide scenarios of queues and workloads.

    Reads scenarios (objects of Kueue's kinds, and what happens to them) and writes one JSON line for each. Bad input is an error, and
    nothing is written then.
    """
    from drayman.api.errors import ApiError
    from drayman.cli.progress import tracked
    from drayman.simulate.quota_replay.driving import replay

    files.refuse_overwriting(results, scenarios)
    decoded = _decode(scenarios)
    with files.writing(results) as out:
        for scenario in tracked(decoded, "replaying"):
            try:
                line = {"name": scenario.name, "checkpoints": replay(scenario)}
            except ApiError as error:
                raise UserError(f"scenario {scenario.name}: {error}") from error
            out.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    to_stderr(f"{len(decoded)} scenarios")


def _decode(path: str) -> list[Scenario]:
    from drayman.api import codec
    from drayman.api.errors import DecodeError
    from drayman.simulate.quota_replay.scenario import Scenario

    found = []
    for number, line in enumerate(files.read(path).splitlines(), 1):
        if line.strip():
            try:
                found.append(codec.decode(Scenario, line))
            except DecodeError as error:
                raise UserError(f"{path}:{number}: {error}") from error
    return found
