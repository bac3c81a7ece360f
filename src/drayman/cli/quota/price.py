"""`drayman quota price`: what manifests would cost in quota, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from drayman.cli import files
from drayman.cli.connecting import Where, talk
from drayman.cli.errors import UserError, no_answer
from drayman.cli.options import manifests_option
from drayman.cli.output import console, format_option, print_data
from drayman.cli.worlds import load_world, unobtrusively, world_options

if TYPE_CHECKING:
    from drayman.api.struct import Json
    from drayman.cluster import HttpClient
    from drayman.placement.world import World
    from drayman.questions.quota_prices import Conditions

SOME_HAVE_NO_PRICE: Final = 1
_EPILOG: Final = """\b
Examples:
  drayman quota price -f job.yaml
  drayman quota price -f job.yaml --config kueue.yaml --offline
  drayman quota price -f app/ --by-flavor
  drayman quota price -f job.yaml --as-kueue -o json

Exit status: 0 everything has a price, 1 something has none, 2 there is no answer.
"""


@click.command(
    short_help="Say what manifests would cost in quota, and why.",
    epilog=_EPILOG,
    options_metavar="-f FILE [OPTIONS]",
)
@manifests_option
@click.option(
    "--config",
    type=files.PATH,
    metavar="FILE",
    help="Kueue's Configuration with the device class mappings. Default: the one that the queues of the cluster work by.",
)
@click.option(
    "--by-flavor",
    is_flag=True,
    help="Give prices for each ResourceFlavor: of devices on its nodes.",
)
@click.option("--as-kueue", is_flag=True, help="Price by Kueue's rules, with its limitations.")
@click.option("--offline", is_flag=True, help="Read no cluster: only the files count.")
@world_options
@format_option
@click.pass_context
@no_answer()
def price(
    ctx: click.Context,
    paths: tuple[str, ...],
    config: str | None,
    by_flavor: bool,
    as_kueue: bool,
    offline: bool,
    output_format: str | None,
    snapshot: str | None,
    namespace: str | None,
    where: Where,
) -> None:
    """Say what the workloads of manifests would be charged in quota, for each pod set, and why.

    Pods, Jobs, Deployments, StatefulSets, Workloads, JobSets and the like are priced with the claim templates, DeviceClasses and
    ResourceSlices of the cluster and those beside them in the files. Nothing is submitted.
    """
    inputs = list(files.read_all(paths))
    given = None if config is None else _configuration(config)
    world, namespace, found, flavors = _cluster(
        snapshot, namespace, where, offline=offline, by_flavor=by_flavor, asks_kueue=config is None
    )
    from drayman.questions.quota_prices import price as priced

    name = "the cluster's Configuration" if config is None else files.display_name(config)
    conditions = _conditions(name, given or found, flavors, by_flavor=by_flavor, as_kueue=as_kueue)
    with unobtrusively():
        answer = asyncio.run(priced(world, inputs, namespace, conditions))
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(answer), output_format)
    else:
        from drayman.cli.quota.drawing import PriceDrawing

        console().print(PriceDrawing(answer))
    if not answer.is_complete:
        ctx.exit(SOME_HAVE_NO_PRICE)


def _configuration(path: str) -> dict[str, Json]:
    from drayman.questions.kueue_configuration import configuration_in

    return configuration_in(files.display_name(path), files.read(path))


def _cluster(
    snapshot: str | None,
    namespace: str | None,
    where: Where,
    *,
    offline: bool,
    by_flavor: bool,
    asks_kueue: bool,
) -> tuple[World, str, dict[str, Json] | None, dict[str, Mapping[str, str]]]:
    """The cluster, the namespace, Kueue's Configuration if it is to be read from there, and the flavors with their node labels."""
    if offline:
        if snapshot is not None or where.kubeconfig is not None or where.context:
            raise UserError(
                "--offline reads no cluster: leave out --snapshot, --kubeconfig and --context"
            )
        from drayman.placement.world import Objects, World
        from drayman.questions.worlds import DEFAULT_NAMESPACE

        return World(Objects(), 0.0), namespace or DEFAULT_NAMESPACE, None, {}
    world, used = load_world(snapshot, namespace, where)
    if snapshot is not None or not (by_flavor or asks_kueue):
        return world, used, world.queue_configuration, {}

    async def work(
        client: HttpClient,
    ) -> tuple[dict[str, Json] | None, dict[str, Mapping[str, str]]]:
        from drayman.questions.kueue_configuration import configuration_of
        from drayman.questions.quota_prices import flavors_of

        found = await configuration_of(client) if asks_kueue else None
        return found, await flavors_of(client) if by_flavor else {}

    return world, used, *talk(where, work)


def _conditions(
    name: str,
    configuration: dict[str, Json] | None,
    flavors: Mapping[str, Mapping[str, str]],
    *,
    by_flavor: bool,
    as_kueue: bool,
) -> Conditions:
    from drayman.questions.kueue_configuration import gates_in, mappings_in
    from drayman.questions.quota_prices import Conditions
    from drayman.quota.charging.rules import KUEUE, Gates, Rules

    gates = gates_in(configuration) if as_kueue else Gates.of_configuration(configuration)
    mappings = mappings_in(name, configuration, gates)
    return Conditions(mappings, KUEUE if as_kueue else Rules(), gates, flavors, by_flavor)
