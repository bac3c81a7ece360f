"""`drayman profiles`: the hardware that can be simulated."""

from __future__ import annotations

from collections import Counter
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import click

from drayman.cli.completing import profile_names
from drayman.cli.errors import UserError
from drayman.cli.output import console, format_option, print_data, to_stdout

if TYPE_CHECKING:
    from rich.console import Console

    from drayman.drivers.profiles import HardwareNode, Profile

_NARROWEST: Final = 20
"""Columns that a description has on the narrowest of terminals."""

_EPILOG: Final = """\b
Examples:
  drayman profiles
  drayman profiles dgx-h100-mig
  drayman profiles gb200-nvl72 -o yaml
"""


@click.command(short_help="List the hardware that `drayman up` can simulate.", epilog=_EPILOG)
@click.argument("name", required=False, shell_complete=profile_names)
@format_option
def profiles(name: str | None, output_format: str | None) -> None:
    """List the hardware that `drayman up --profile NAME=COUNT` can simulate.

    With NAME, which may be the file of a profile of your own, show what one node of it publishes; with -o the objects themselves.
    """
    from drayman.drivers.profiles import PROFILES, ProfileError, parse_profiles

    if name is None:
        _list(list(PROFILES.values()), output_format)
        return
    try:
        (wanted,) = parse_profiles(f"{name}=1")
    except (ProfileError, ValueError) as error:
        raise UserError(str(error)) from error
    if output_format:
        print_data(_objects(wanted.profile), output_format)
        return
    _show(wanted.profile)


def _list(found: list[Profile], output_format: str | None) -> None:
    if output_format:
        rows = [
            {"name": p.name, "nodes": p.nodes_per_unit, "description": p.summary} for p in found
        ]
        print_data({"profiles": rows}, output_format)
        return
    width = max(len(profile.name) for profile in found)
    out = console()
    to_stdout(f"{'NAME':<{width}}  NODES  DESCRIPTION")
    for profile in found:
        before = f"{profile.name:<{width}}  {profile.nodes_per_unit:>5}  "
        # A pipe gets a line for each.
        to_stdout(
            _beside(before, profile.summary, out) if out.is_terminal else before + profile.summary
        )


def _objects(profile: Profile) -> dict[str, Any]:
    """A list of what one node brings, as `kubectl get -o yaml` would show it."""
    from drayman.api.codec import to_dict

    node = profile.unit(0)[0]
    items = [
        *node.definitions,
        *(to_dict(item) for item in node.classes),
        to_dict(node.node),
        *(to_dict(item) for item in node.slices),
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _show(profile: Profile) -> None:
    from rich.markup import escape

    unit = profile.unit(0)
    node = unit[0]
    out = console()
    out.print(f"[bold]{escape(profile.name)}[/]: {escape(profile.summary)}")
    nodes = "node" if len(unit) == 1 else "nodes"
    first = escape(node.node.metadata.name)
    out.print(f"{len(unit)} {nodes} per unit; the first is {first}\n")
    for driver, text in _drivers(node):
        out.print(escape(f"  {driver:<26} {text}"))
    classes = ", ".join(item.metadata.name for item in node.classes)
    out.print(escape(f"\n{_beside('  classes: ', classes, out)}"))
    capacity = node.node.status.capacity
    out.print(f"  node:    {capacity['cpu']} CPUs, {capacity['memory']} of memory")


def _beside(before: str, text: str, out: Console) -> str:
    """The text to the right of what precedes it, wrapped in its own column where it does not fit."""
    lines = wrap(text, max(out.width - len(before), _NARROWEST), break_on_hyphens=False)
    return before + f"\n{' ' * len(before)}".join(lines)


def _drivers(node: HardwareNode) -> list[tuple[str, str]]:
    from drayman.reasons.wording import counted

    slices: Counter[str] = Counter(item.spec.driver for item in node.slices)
    devices: Counter[str] = Counter()
    example: dict[str, str] = {}
    for item in node.slices:
        for device in item.spec.devices or ():
            devices[item.spec.driver] += 1
            example.setdefault(item.spec.driver, device.name)
    return [
        (
            driver,
            f"{devices[driver]:>4} devices in {counted(count, 'slice')}, such as {example[driver]}",
        )
        for driver, count in slices.items()
    ]
