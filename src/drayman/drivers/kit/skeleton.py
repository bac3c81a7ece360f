"""What `drayman driver new` writes: a driver that works, and a test that shows it."""

from __future__ import annotations

import re
from string import Template
from typing import Final

from msgspec import Struct

from drayman.drivers.kit.naming import require_name


class Skeleton(Struct, frozen=True):
    """The files of a new driver."""

    module: str
    class_: str
    files: dict[str, str]
    """By name."""


def skeleton(name: str) -> Skeleton:
    """A driver of that name. Raises KitError if no driver can have it."""
    require_name(name)
    words = re.findall(r"[a-z0-9]+", name.partition(".")[0])
    stem = "_".join(words)
    module = f"{'x_' if stem[0].isdigit() else ''}{stem}_driver"
    class_ = "".join(word.capitalize() for word in module.split("_"))
    values = {"name": name, "module": module, "class_": class_, "stem": stem.replace("_", "-")}
    files = {
        f"{module}.py": _DRIVER.substitute(values, variable=stem.upper()),
        f"test_{module}.py": _TEST.substitute(values, variable=stem.upper()),
    }
    return Skeleton(module, class_, files)


_DRIVER: Final = Template('''\
"""The driver $name."""

from collections.abc import Iterable

from drayman.drivers.kit import (
    Claim,
    Config,
    Device,
    DeviceNode,
    Driver,
    Prepared,
    PreparedDevice,
    always,
    main,
    string,
)


class ${class_}Config(Config):
    """What claims and classes may ask of a device. Fields that are not here are refused."""

    api_version: str = always("$name/v1alpha1")
    kind: str = always("${class_}Config")
    mode: str = "normal"

    def problems(self) -> Iterable[str]:
        """What is wrong with the values: the owner of the pod reads it."""
        if self.mode not in ("normal", "fast"):
            yield f"mode: {self.mode!r} is none of normal, fast"


class $class_(Driver):
    """Replace the two made-up devices by those of the machine."""

    name = "$name"
    configs = (${class_}Config,)

    def discover(self) -> list[Device]:
        """The devices of this node, with what selectors can ask for."""
        return [
            Device(name=f"$stem-{index}", attributes={"model": string("Model 1")})
            for index in range(2)
        ]

    def prepare(self, claim: Claim) -> Prepared:
        """Make the devices usable, and say what containers need. Raise PrepareError if that is impossible."""
        return Prepared(
            devices=[
                PreparedDevice(
                    device=each,
                    env={"${variable}_DEVICE": each.name, "${variable}_MODE": each.config.mode},
                    device_nodes=[DeviceNode(path="/dev/null")],
                )
                for each in claim.devices
            ]
        )

    def unprepare(self, claim: Claim) -> None:
        """Undo what prepare did. It may have been interrupted, and this may be the second time."""


if __name__ == "__main__":
    main($class_)
''')

_TEST: Final = Template('''\
"""The driver $name on a node that speaks the kubelet's protocol."""

import asyncio
import tempfile
from pathlib import Path

from $module import $class_

from drayman.drivers.kit import Plugin
from drayman.testing import FakeKubelet, TestCluster


def test_a_container_gets_its_device() -> None:
    """Registered, prepared, seen by a container, and given back without a trace."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(use_a_device(Path(folder)))


async def use_a_device(folder: Path) -> None:
    async with (
        TestCluster(folder) as cluster,
        FakeKubelet(cluster.client, "node-1", folder) as kubelet,
    ):
        await cluster.add_node("node-1")
        async with Plugin($class_("node-1"), cluster.client, kubelet.options()):
            claim = await cluster.allocate("claim", $class_.name, "node-1", {"r": "$stem-0"})
            answer = await kubelet.prepare($class_.name, claim)
            assert kubelet.container(answer).env == {
                "${variable}_DEVICE": "$stem-0",
                "${variable}_MODE": "normal",
            }
            assert await kubelet.unprepare($class_.name, claim) is None
            assert kubelet.cdi_files() == []
''')
