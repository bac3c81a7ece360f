"""`drayman simulate`: what a trace of tasks comes to under different ways to place them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final

import click
from click.core import ParameterSource

from drayman.cli import files
from drayman.cli.output import console, format_option, print_data
from drayman.cli.prices import load_prices
from drayman.cli.progress import gauged

_POLICIES: Final = ("best", "best-fit", "first-fit", "random")
_MOST_SEEDS: Final = 1_000
_EPILOG: Final = """\b
Examples:
  drayman simulate --trace traces
  drayman simulate --trace traces --policy best --policy random --seeds 2
  drayman simulate --trace traces --arrivals recorded --policy best -o json
  drayman simulate --trace traces --load 0.9 --html report.html

\b
The folder has a table of nodes (*node_list*.csv) and tables of tasks
(*pod_list_WORKLOAD.csv), in the form of Alibaba's GPU cluster trace of 2023.
"""


@click.command(
    short_help="Replay a trace of tasks, and compare ways to place them.",
    epilog=_EPILOG,
    options_metavar="--trace DIR [OPTIONS]",
)
@click.option(
    "--trace",
    "folder",
    type=click.Path(readable=False),
    metavar="DIR",
    required=True,
    help="The folder with the tables of the trace.",
)
@click.option(
    "--policy",
    "policies",
    type=click.Choice(_POLICIES),
    multiple=True,
    help="How nodes are chosen; can be repeated. All of them if none is named.",
)
@click.option(
    "--workload",
    "workloads",
    metavar="NAME",
    multiple=True,
    help="The table of tasks, by the end of its name; can be repeated. [default: default]",
)
@click.option(
    "--arrivals",
    type=click.Choice(["random", "recorded"]),
    default="random",
    show_default=True,
    help="Random tasks that never end, or tasks at their times for as long as they ran.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, _MOST_SEEDS),
    default=1,
    show_default=True,
    help="How many random orders of arrival.",
)
@click.option(
    "--first-seed",
    type=click.IntRange(0, 1 << 31),
    default=0,
    show_default=True,
    help="The seed of the first of them; the others follow.",
)
@click.option(
    "--load",
    type=click.FloatRange(0.01, 10.0),
    default=1.3,
    show_default=True,
    help="How much random tasks ask for, as a part of all GPUs.",
)
@click.option(
    "--prices",
    type=files.PATH,
    metavar="FILE",
    help="What nodes cost; the model of their GPUs is their instance type.",
)
@click.option(
    "--html",
    "page",
    type=files.PATH,
    metavar="FILE",
    help="Write the report with plots to this file, too.",
)
@format_option
def simulate(
    folder: str,
    policies: tuple[str, ...],
    workloads: tuple[str, ...],
    arrivals: str,
    seeds: int,
    first_seed: int,
    load: float,
    prices: str | None,
    page: str | None,
    output_format: str | None,
) -> None:
    """Replay a trace of tasks on its nodes, under several ways to choose a node, and say how much of the GPUs is allocated.

    The allocator and the order of nodes of `best` are those of the scheduler; no cluster is needed, and none is touched.
    """
    from drayman.questions.trace import RECORDED, Replaying, replay

    if arrivals == RECORDED:
        _refuse_what_is_random()
    asked = Replaying(
        folder=folder,
        policies=tuple(dict.fromkeys(policies)) or _POLICIES,
        workloads=tuple(dict.fromkeys(workloads)),
        arrivals=arrivals,
        seeds=seeds,
        first_seed=first_seed,
        load=load,
        prices=load_prices(prices),
    )
    # A file that cannot be written is reported before the work, which may be long.
    with nullcontext() if page is None else files.writing(page) as file:
        with gauged("replaying") as gauge:
            found = replay(asked, gauge.update)
        if file is not None:
            from drayman.cli.simulate.page import page_of

            file.write(page_of(found).encode())
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(found), output_format)
        return
    from drayman.cli.simulate.drawing import drawn

    drawn(found, console())


def _refuse_what_is_random() -> None:
    """Options that would have no effect. Raises UsageError."""
    context = click.get_current_context()
    for name in ("seeds", "first_seed", "load"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} is about random arrivals, not those recorded.")
