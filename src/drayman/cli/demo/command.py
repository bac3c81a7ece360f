"""The command: allocate the claims one after another, then show the node."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import click

from drayman.cli.errors import UserError
from drayman.cli.output import console, format_option, print_data

if TYPE_CHECKING:
    from rich.console import Console

    from drayman.allocator import Plan, Refusal
    from drayman.api.resource import ResourceClaim
    from drayman.cli.demo.remedies import Remedy
    from drayman.cli.demo.scene import Layout, Scene
    from drayman.inventory import DeviceId

_EPILOG: Final = """\b
Examples:
  drayman demo
  drayman demo -o yaml

The claims are ordinary ResourceClaims; they lie in examples/demo.
"""


_DESCRIPTION: Final = "drayman.dev/description"


@dataclass(frozen=True, slots=True)
class Act:
    """One claim and what became of it."""

    claim: ResourceClaim
    granted: tuple[tuple[str, DeviceId], ...] = ()
    refusal: Refusal | None = None
    remedies: tuple[Remedy, ...] = ()
    freeing: tuple[Remedy, ...] = field(default=())


@click.command(epilog=_EPILOG)
@format_option
def demo(output_format: str | None) -> None:
    """Three claims on a simulated DGX H100.

    No hardware is needed: eight GPUs and eight network interfaces, as NVIDIA's driver and DRANET would publish them. One claim
    asks for a GPU and a NIC on the same PCIe root, one for four GPUs, and one for something that the node cannot give.
    """
    from drayman.cli.demo.scene import build, claims, layout

    scene = build()
    acts = [_play(scene, claim) for claim in claims()]
    places = layout(scene)
    if output_format:
        print_data(
            {"node": scene.node.metadata.name, "claims": [_as_data(a) for a in acts]}, output_format
        )
        return
    out = console()
    _introduce(out, places, scene)
    for number, act in enumerate(acts, start=1):
        if act.refusal is None:
            _tell_granted(out, places, number, act)
    _draw(out, places, acts)
    for number, act in enumerate(acts, start=1):
        if act.refusal is not None:
            _tell_refused(out, places, number, act, act.refusal)


def _play(scene: Scene, claim: ResourceClaim) -> Act:
    """Search, then commit; for a refusal, find out what would help."""
    from drayman.allocator import Plan, Policy, Refusal, search
    from drayman.cli.demo.remedies import freeing_helps, remedies

    outcome = search(scene.view(), [claim], policy=Policy.BEST)
    match outcome:
        case Plan():
            scene.ledger.commit(outcome)
            return Act(claim, granted=_granted(outcome))
        case Refusal():
            return Act(
                claim,
                refusal=outcome,
                remedies=tuple(remedies(scene, claim)),
                freeing=tuple(freeing_helps(scene, claim)),
            )
        case _:
            raise UserError(f"{claim.metadata.name}: {outcome}")


def _granted(plan: Plan) -> tuple[tuple[str, DeviceId], ...]:
    from drayman.inventory import DeviceId

    return tuple(
        (entry.request, DeviceId(entry.driver, entry.pool, entry.device))
        for item in plan.claims
        for entry in item.allocation.devices.results
    )


def _as_data(act: Act) -> dict[str, Any]:
    data: dict[str, Any] = {"name": act.claim.metadata.name, "allocated": act.refusal is None}
    if act.refusal is None:
        data["devices"] = [
            {
                "request": request,
                "driver": device.driver,
                "pool": device.pool,
                "device": device.device,
            }
            for request, device in act.granted
        ]
        return data
    data["kind"] = act.refusal.kind.value
    data["rejections"] = [
        {
            "request": each.request,
            "reason": each.reason.value,
            "devices": [device.device for device in each.devices],
            "remaining": each.remaining,
            "wanted": each.wanted,
        }
        for each in act.refusal.rejections
    ]
    data["remedies"] = [
        {"change": each.change, "devices": [device.device for device in each.devices]}
        for each in (*act.remedies, *act.freeing)
    ]
    return data


def _introduce(out: Console, places: Layout, scene: Scene) -> None:
    names = list(places.names.values())
    gpus = sum(name.startswith("GPU") for name in names)
    nics = sum(name.startswith("NIC") for name in names)
    out.print(
        f"[bold]{scene.node.metadata.name}[/]: a simulated DGX H100 with {gpus} GPUs and {nics} NICs\n"
    )


def _tell_title(out: Console, number: int, act: Act, verdict: str) -> None:
    metadata = act.claim.metadata
    out.print(f"[bold]{number}  {metadata.name}[/]: {metadata.annotations.get(_DESCRIPTION, '')}")
    out.print(f"   {verdict}")


def _tell_granted(out: Console, places: Layout, number: int, act: Act) -> None:
    rows = [places.rows[device] for _, device in act.granted]
    links = [places.matrix.rows[one].links[other] for one, other in combinations(rows, 2)]
    farthest = max(links, default=None)
    near = (
        "" if farthest is None else f", no farther apart than {farthest.code}: {farthest.meaning}"
    )
    _tell_title(out, number, act, f"[green]allocated[/]{near}")
    for (request, device), row in zip(act.granted, rows, strict=True):
        place = places.matrix.rows[row].locality
        out.print(
            f"     {request:<5} {places.names[device]}  {device.device:<17}"
            f" {place.pcie_root}  NUMA {place.numa}"
        )
    out.print()


def _draw(out: Console, places: Layout, acts: list[Act]) -> None:
    from drayman.cli.matrix import Drawing

    marks = {
        places.rows[device]: number
        for number, act in enumerate(acts, start=1)
        for _, device in act.granted
    }
    drawing = Drawing(places.matrix, list(places.names.values()), marks)
    for line in drawing.lines(out.width):
        out.print(line)
    out.print()


def _tell_refused(out: Console, places: Layout, number: int, act: Act, refusal: Refusal) -> None:
    from drayman.cli.demo.words import KINDS, funnel

    _tell_title(out, number, act, f"[red]refused[/] ({refusal.kind.value}): {KINDS[refusal.kind]}")
    out.print("   [bold]why[/]")
    for line in funnel(refusal.rejections):
        out.print(f"     {line}")
    out.print("   [bold]what would help[/] (each was tried)")
    for remedy in (*act.remedies, *act.freeing):
        names = ", ".join(places.names[device] for device in remedy.devices)
        out.print(f"     [green]+[/] {remedy.change}: {names}")
    if not act.freeing:
        out.print("     [red]-[/] freeing devices would not: it does not fit on the empty node")
