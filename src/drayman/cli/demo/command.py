"""The command: run the examples on a cluster, then show where each pod's devices are and why the last one waits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from drayman.api import codec
from drayman.cli.errors import UserError
from drayman.cli.output import console, format_option, print_data

if TYPE_CHECKING:
    from rich.console import Console

    from drayman.api.core import Pod
    from drayman.api.resource import DeviceRequestAllocationResult
    from drayman.cli.demo.staging import Result
    from drayman.explain.answer import Explanation

_EPILOG: Final = """\b
Examples:
  drayman demo
  drayman demo -o yaml

The manifests are ordinary ones; they are in examples/.
"""


@dataclass(frozen=True, slots=True)
class Act:
    """One pod and what became of it."""

    number: int
    title: str
    pod: Pod
    granted: tuple[DeviceRequestAllocationResult, ...] = ()


@click.command(epilog=_EPILOG)
@format_option
def demo(output_format: str | None) -> None:
    """Run the examples on a cluster of simulated nodes.

    No hardware is needed: a DGX H100, another one with MIG, and a node of the example driver, with a scheduler and controllers, all in this
    process and gone in seconds. Shows where each pod's devices are, and why the last pod waits.
    """
    from drayman.cli.demo.staging import play

    result = play()
    acts = _acts(result)
    waiting = next((act for act in acts if not act.granted), None)
    why = None if waiting is None else _explain(result, waiting)
    if output_format:
        print_data({"pods": [_pod_data(act, why) for act in acts]}, output_format)
        return
    out = console()
    names = [node.node.metadata.name for node in result.hardware.nodes]
    out.print(f"[bold]{len(names)} simulated nodes[/]: {', '.join(names)}\n")
    for manifest, group in groupby(acts, key=lambda act: act.number):
        pods = list(group)
        if all(act.granted for act in pods):
            out.print(f"[bold]{manifest}  {pods[0].title}[/]")
            for act in pods:
                _print_granted(out, result, act)
            out.print()
    _draw(out, result, acts)
    if waiting is not None and why is not None:
        _print_waiting(out, result, waiting, why)


def _acts(result: Result) -> list[Act]:
    acts = []
    for number, manifest in enumerate(result.manifests, start=1):
        for name in manifest.pods:
            pod = result.pods.get(name)
            if pod is None:
                raise UserError(f"{manifest.name}: pod {name} did not come up in time")
            granted = tuple(
                entry for claim in result.claims_of(pod) for entry in claim.status.results
            )
            acts.append(Act(number, manifest.title, pod, granted))
    return acts


def _explain(result: Result, act: Act) -> Explanation:
    """As `drayman explain` does. Versions mean nothing for a cluster that no longer exists."""
    from drayman.explain.pod import explain_pod

    return msgspec.structs.replace(explain_pod(result.world, act.pod), evidence={})


def _pod_data(act: Act, why: Explanation | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": act.pod.metadata.name,
        "title": act.title,
        "phase": act.pod.status.phase,
        "node": act.pod.spec.node_name,
        "devices": [
            {"request": e.request, "driver": e.driver, "pool": e.pool, "device": e.device}
            for e in act.granted
        ],
    }
    if act.granted or why is None:
        return data
    data["explanation"] = codec.to_dict(why)
    return data


def _print_granted(out: Console, result: Result, act: Act) -> None:
    name = act.pod.metadata.name
    out.print(f"   {name}: [green]{act.pod.status.phase}[/] on {act.pod.spec.node_name}")
    places = _places(result)
    width = max(len(entry.request) for entry in act.granted)
    for entry in act.granted:
        place = places.get((entry.driver, entry.pool, entry.device), "")
        amount = ", ".join(f"{key} {value}" for key, value in entry.consumed_capacity.items())
        out.print(f"     {entry.request:<{width}}  {entry.device:<21}  {place}{amount}".rstrip())


def _places(result: Result) -> dict[tuple[str, str, str], str]:
    """Where each device is, for those that publish it."""
    places = {}
    for node in result.hardware.nodes:
        for item in node.slices:
            for device in item.spec.devices or ():
                root = device.attributes.get("resource.kubernetes.io/pcieRoot")
                numa = device.attributes.get("resource.kubernetes.io/numaNode")
                if root is not None and numa is not None:
                    key = (item.spec.driver, item.spec.pool.name, device.name)
                    places[key] = f"{root.string}  NUMA {numa.int_}"
    return places


def _draw(out: Console, result: Result, acts: list[Act]) -> None:
    """The matrix of the first node, with what was chosen there."""
    from drayman.cli.matrix import Drawing
    from drayman.inventory import DeviceId
    from drayman.questions.devices.distances import distances
    from drayman.questions.devices.reading import reading_of

    hardware = result.hardware.nodes[0]
    reading = reading_of([hardware.node], hardware.slices, result.claims)
    found = distances(reading, hardware.node)
    rows = {each.id: at for at, unit in enumerate(found.units) for each in unit.members}
    marks = {
        rows[device]: act.number
        for act in acts
        for entry in act.granted
        if (device := DeviceId.of(entry)) in rows
    }
    out.print(f"[bold]{hardware.node.metadata.name}[/]")
    for line in Drawing(found.matrix, found.names, marks).lines(out.width):
        out.print(line)
    out.print()


def _print_waiting(out: Console, result: Result, act: Act, why: Explanation) -> None:
    from rich.padding import Padding

    from drayman.cli.explain.drawing import Drawing
    from drayman.cli.explain.layout import Trimmed

    out.print(f"[bold]{act.number}  {act.title}[/]")
    out.print(Trimmed(Padding(Drawing(why, result.world.now), (0, 0, 0, 3))))
