"""Attributes as drivers write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from drayman.api.resource import DeviceAttribute
from drayman.drivers.kit import Device, string, version
from drayman.drivers.kit.attributes import with_attributes
from drayman.drivers.kit.errors import PublishError
from drayman.drivers.kit.model import Hardware
from drivers.kit.probing import Probe, names, world


def of(**attributes: Any) -> Hardware:
    return Hardware.of([Device(name="b-0", attributes=attributes)])


def test_plain_values_get_their_types() -> None:
    """A truth value is not a number, and what names its type stays as it is."""
    found = with_attributes(of(model="x", size=3, fast=True, driver=version("1.2.3")))
    assert found.devices[0].attributes == {
        "model": string("x"),
        "size": DeviceAttribute(int_=3),
        "fast": DeviceAttribute(bool_=True),
        "driver": version("1.2.3"),
    }


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (1.5, "is of the type float"),
        (None, "NoneType"),
        (2**63, "does not fit into 64 bits"),
        ("x\udcff", r"is 'x\\udcff', which has bytes that are not UTF-8"),
        (string("x\udcff"), r"is 'x\\udcff', which has bytes that are not UTF-8"),
        (version("1\udcff"), r"is '1\\udcff', which has bytes that are not UTF-8"),
        (DeviceAttribute(strings=("x", "y\udcff")), r"is 'y\\udcff', which has bytes"),
        (DeviceAttribute(versions=("1\udcff",)), r"is '1\\udcff', which has bytes"),
        (DeviceAttribute(string=5), "is of the type int"),
    ],
)
def test_other_values_are_refused(value: object, problem: str) -> None:
    """The message names the device and the attribute."""
    with pytest.raises(PublishError, match=f"attribute model of device b-0 .*{problem}"):
        with_attributes(of(model=value))


class Plain(Probe):
    """Describes its devices without the types of the kit."""

    size: Any = 3

    def discover(self) -> Iterable[Device]:
        return [Device(name="probe-0", attributes={"size": self.size})]


async def test_a_driver_may_write_plain_values(caplog: pytest.LogCaptureFixture) -> None:
    """They are published; those that cannot be are in the log, and what was published stays."""
    driver = Plain()
    async with world() as w, w.plugin(driver) as plugin:
        (found,) = await w.until_slices(lambda found: names(found) == ["probe-0"])
        assert found.spec.devices is not None
        assert found.spec.devices[0].attributes == {"size": DeviceAttribute(int_=3)}
        for driver.size in (1.5, "3\udcff"):
            assert not await plugin.discover()
        driver.size = 4
        assert await plugin.discover()
        await w.until_slices(
            lambda found: found[0].spec.devices[0].attributes == {"size": DeviceAttribute(int_=4)}
        )
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "attribute size of device probe-0 is of the type float" in errors[0].getMessage()
    assert r"attribute size of device probe-0 is '3\udcff', which" in errors[1].getMessage()
    assert not any(error.exc_info for error in errors)
