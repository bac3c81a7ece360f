"""`drayman replay quota`: recorded scenarios of Kueue's queues, decided by the engine of quota."""

from __future__ import annotations

import json
from functools import partial
from typing import Final

import click

from drayman.cli import files
from drayman.cli.errors import UserError
from drayman.cli.output import to_stderr
from drayman.cli.replay.scenario_files import counted, read_scenarios, scenario_options

_EPILOG: Final = """\b
Examples:
  drayman replay quota --scenarios scenarios.jsonl --results results.jsonl

A result line has the name of the scenario and a checkpoint for each `settle`:
the workloads with their status, flavors and usage, the queues, and what
happened since the checkpoint before.
"""


@click.command(epilog=_EPILOG)
@scenario_options
def quota(scenarios: str, results: str) -> None:
    """Decide scenarios of queues and workloads.

    Reads scenarios (objects of Kueue's kinds, and what happens to them) and writes one JSON line for each. Bad input is an error, and
    nothing is written then.
    """
    from drayman.api import codec
    from drayman.api.errors import ApiError, DecodeError
    from drayman.cli.progress import tracked
    from drayman.simulate.quota_replay.driving import replay
    from drayman.simulate.quota_replay.scenario import Scenario

    files.refuse_overwriting(results, scenarios)
    found = read_scenarios(scenarios, partial(codec.decode, Scenario), DecodeError)
    with files.writing(results) as out:
        for scenario in tracked(found, "replaying"):
            try:
                line = {"name": scenario.name, "checkpoints": replay(scenario)}
            except ApiError as error:
                raise UserError(f"scenario {scenario.name}: {error}") from error
            out.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    to_stderr(counted(len(found)))
