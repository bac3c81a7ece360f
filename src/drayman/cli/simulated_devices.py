"""`drayman device`: taint devices and take them away.

A taint is a DeviceTaintRule, as an administrator would write it, so it works for any driver. A device is removed from the slice that
publishes it, as a driver does when a device has failed; that is for simulated nodes, because a real driver would publish it again.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import click

from drayman.cli.connecting import Where, announce, cluster_options, talk
from drayman.cli.errors import UserError
from drayman.cli.lazy import LazyGroup
from drayman.cli.output import to_stdout
from drayman.questions.devices.finding import PublishedDevice, find_device, is_about, taint_rules
from drayman.questions.errors import NamingError

if TYPE_CHECKING:
    from drayman.api.resource import DeviceTaint, DeviceTaintRule
    from drayman.cluster import Client, HttpClient

_EPILOG: Final = """\b
Examples:
  drayman device list --node example-0
  drayman device taint example-0/gpu-0 example.com/broken=yes:NoExecute
  drayman device untaint example-0/gpu-0
  drayman device remove example-0/gpu-1
"""
_LABEL: Final = "drayman.dev/device-taint"
_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
_TAINT: Final = re.compile(r"(?P<key>[^=:]+)(?:=(?P<value>[^:]*))?:(?P<effect>\w+)")


@click.group(cls=LazyGroup, lazy={
    "list": "drayman.cli.device_list:list_devices",
    "taint": "drayman.cli.simulated_devices:taint",
    "untaint": "drayman.cli.simulated_devices:untaint",
    "remove": "drayman.cli.simulated_devices:remove",
}, epilog=_EPILOG)  # fmt: skip
def device() -> None:
    """List, taint and remove devices. DEVICE is POOL/NAME or DRIVER/POOL/NAME."""


_DEVICE: Final = click.argument("name", metavar="DEVICE")


@click.command(
    epilog="\b\nExamples:\n  drayman device taint example-0/gpu-0 example.com/broken:NoSchedule\n"
)
@_DEVICE
@click.argument("wanted", metavar="KEY[=VALUE]:EFFECT")
@cluster_options
def taint(name: str, wanted: str, where: Where) -> None:
    """Taint a device. EFFECT is NoSchedule, NoExecute (pods that use it are evicted) or None (information only)."""
    from drayman.api.resource import DeviceTaint

    match = _TAINT.fullmatch(wanted)
    if match is None or match["effect"] not in _EFFECTS:
        raise click.UsageError(
            f"{wanted!r} is not a taint; write KEY[=VALUE]:EFFECT with one of {', '.join(_EFFECTS)}"
        )
    made = DeviceTaint(key=match["key"], value=match["value"] or "", effect=match["effect"])

    async def work(client: HttpClient) -> None:
        from drayman.cluster.resources import DEVICE_TAINT_RULES

        found = await _found(client, name)
        await client.create(DEVICE_TAINT_RULES, _rule(found, made))
        announce(client)
        to_stdout(f"device/{found} tainted")

    talk(where, work)


@click.command(
    short_help="Remove the taints that `drayman device taint` gave a device.",
    epilog="\b\nExamples:\n  drayman device untaint example-0/gpu-0 example.com/broken\n",
)
@_DEVICE
@click.argument("key", required=False)
@cluster_options
def untaint(name: str, key: str | None, where: Where) -> None:
    """Remove the taints that `drayman device taint` gave a device, or only those with KEY."""

    async def work(client: HttpClient) -> None:
        from drayman.cluster.resources import DEVICE_TAINT_RULES

        found = await _found(client, name)
        ours = [
            rule
            for rule in await taint_rules(client)
            if rule.metadata.labels.get(_LABEL) == "true"
            and is_about(rule, found)
            and key in (None, rule.spec.taint.key)
        ]
        if not ours:
            what = "no taint" if key is None else f"no taint {key!r}"
            raise UserError(f"{found} has {what} that `drayman device taint` gave it")
        for rule in ours:
            await client.delete(DEVICE_TAINT_RULES, rule.metadata.name)
        announce(client)
        to_stdout(f"device/{found} untainted")

    talk(where, work)


@click.command(
    short_help="Remove a device, as a driver does when it loses one.",
    epilog="\b\nExamples:\n  drayman device remove gpu.example.com/example-0/gpu-1\n",
)
@_DEVICE
@cluster_options
def remove(name: str, where: Where) -> None:
    """Remove a device from the slice that publishes it, as a driver does when it loses one.

    Claims that have it keep it; no other claim gets it. It comes back when its node is deleted and registered again.
    """

    async def work(client: HttpClient) -> None:
        from drayman.cluster import json_patch
        from drayman.cluster.resources import RESOURCE_SLICES

        found = await _found(client, name)
        if not found.node or not await _is_simulated(client, found.node):
            raise UserError(
                f"{found} is not on a simulated node: its driver would publish it again"
            )
        path = f"/spec/devices/{found.index}"
        steps: list[dict[str, Any]] = [
            {"op": "test", "path": f"{path}/name", "value": found.name},
            {"op": "remove", "path": path},
        ]
        await client.patch(RESOURCE_SLICES, found.slice_name, json_patch(steps))
        announce(client)
        to_stdout(f"device/{found} removed")

    talk(where, work)


async def _found(client: Client, name: str) -> PublishedDevice:
    """The device that is meant. Raises UsageError for text that does not name a device, and QuestionError."""
    try:
        return await find_device(client, name)
    except NamingError as error:
        raise click.UsageError(str(error)) from error


async def _is_simulated(client: Client, node_name: str) -> bool:
    from drayman.cluster.resources import NODES
    from drayman.node.reporting import SIMULATED

    found = await client.get(NODES, node_name)
    return found.metadata.labels.get(SIMULATED) == "true"


def _rule(found: PublishedDevice, wanted: DeviceTaint) -> DeviceTaintRule:
    from drayman.api.meta import ObjectMeta
    from drayman.api.resource import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
    from drayman.cluster.resources import DEVICE_TAINT_RULES

    text = f"{found}/{wanted.key}:{wanted.effect}".encode()
    return DeviceTaintRule(
        api_version=DEVICE_TAINT_RULES.api_version,
        metadata=ObjectMeta(
            name=f"drayman-{blake2b(text, digest_size=8).hexdigest()}", labels={_LABEL: "true"}
        ),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(
                driver=found.driver, pool=found.pool, device=found.name
            ),
            taint=wanted,
        ),
    )
