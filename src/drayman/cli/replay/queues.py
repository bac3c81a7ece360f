"""`drayman replay queues`: recorded scenarios of hierarchical queues, decided cycle by cycle until they are at rest."""

from __future__ import annotations

from typing import Final

import click
import msgspec

from drayman.cli import files
from drayman.cli.errors import UserError
from drayman.cli.output import to_stderr
from drayman.cli.replay.scenario_files import counted, read_scenarios, scenario_options

_EPILOG: Final = """\b
Examples:
  drayman replay queues --scenarios scenarios.jsonl --results results.jsonl
  zcat scenarios.jsonl.gz | drayman replay queues --scenarios - --results -

A result line has the name of the scenario, the node of each pod that runs at
rest (placement), how often pods of each group were evicted until then
(evicted), the share of each queue (fairShare), and what the first cycle did
(first: pods bound and nominated per group, evicted per group and action).
"""


@click.command(epilog=_EPILOG)
@scenario_options
def queues(scenarios: str, results: str) -> None:
    """Decide scenarios of queues and pod groups.

    Reads scenarios (nodes, queues as the KAI Scheduler has them, pod groups of which some run) and writes one JSON line for
    each. Bad input is an error before anything is written.
    """
    from drayman.cli.progress import tracked
    from drayman.quota.shares.places import PlaceError
    from drayman.simulate.queue_scenarios import ScenarioError, decoded, replayed

    files.refuse_overwriting(results, scenarios)
    found = read_scenarios(scenarios, decoded, ScenarioError)
    with files.writing(results) as out:
        for scenario in tracked(found, "replaying"):
            try:
                result = replayed(scenario)
            except PlaceError as error:
                raise UserError(f"scenario {scenario.name}: {error}") from error
            out.write(msgspec.json.encode(result) + b"\n")
    to_stderr(f"{counted(len(found))}, all at rest")
