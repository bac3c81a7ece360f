"""A device of the API as a value of the language.

Attributes and capacities are grouped by domain; a name without one belongs to the driver's. All attributes are converted, whether an
expression reads them or not, so an attribute without a value makes every expression fail on the device, as upstream.
"""

from __future__ import annotations

from functools import lru_cache

from drayman.api.resource import Device, DeviceAttribute
from drayman.cel.device_types import Features
from drayman.cel.errors import EvaluationError
from drayman.cel.libraries.quantity import QuantityValue
from drayman.cel.libraries.semver import SemverValue, parse_semver
from drayman.cel.values import MISSING, MapValue


class Domains(MapValue):
    """The outer map of attributes or capacities: looking up an unknown domain gives an empty map, while `in`, `size` and
    comprehensions see only what is there."""

    __slots__ = ()

    def find(self, key: object) -> object:
        value = super().find(key)
        return MapValue() if value is MISSING else value

    @property
    def is_zero(self) -> bool:
        return False

    def plain(self) -> MapValue:
        return MapValue(self)


def split_name(name: str, driver: str) -> tuple[str, str]:
    """The domain and the identifier of a qualified name."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def device_value(driver: str, device: Device, features: Features) -> MapValue:
    """Raises EvaluationError for a device with an attribute that cannot be converted."""
    attributes, capacity = Domains(), Domains()
    for name, attribute in device.attributes.items():
        domain, identifier = split_name(name, driver)
        value = attribute_value(name, attribute, features)
        _inner(attributes, domain)[identifier] = value
    for name, entry in device.capacity.items():
        domain, identifier = split_name(name, driver)
        _inner(capacity, domain)[identifier] = QuantityValue.of(entry.value)
    return MapValue(
        driver=driver,
        allowMultipleAllocations=bool(device.allow_multiple_allocations),
        attributes=attributes,
        capacity=capacity,
    )


def _inner(domains: Domains, domain: str) -> MapValue:
    found = domains.get(domain)
    if isinstance(found, MapValue):
        return found
    created = domains[domain] = MapValue()
    return created


def attribute_value(name: str, attribute: DeviceAttribute, features: Features) -> object:
    if features.list_attributes:
        for values in (attribute.ints, attribute.bools, attribute.strings):
            if values is not None:
                return list(values)
        if attribute.versions is not None:
            return [_version(name, text) for text in attribute.versions]
    for value in (attribute.int_, attribute.bool_, attribute.string):
        if value is not None:
            return value
    if attribute.version is not None:
        return _version(name, attribute.version)
    raise EvaluationError(f"attribute {name}: unsupported attribute value")


def _version(name: str, text: str) -> SemverValue:
    problem = _version_problem(text)
    if problem is not None:
        raise EvaluationError(f"attribute {name}: parse semantic version: {problem}")
    return parse_semver(text)


@lru_cache(maxsize=4096)
def _version_problem(text: str) -> str | None:
    try:
        parse_semver(text)
    except EvaluationError as error:
        return str(error)
    return None


def device_problem(device: Device, features: Features) -> str | None:
    """Why every expression fails on the device, if so. Much cheaper than converting it."""
    for name, attribute in device.attributes.items():
        if (
            attribute.string is not None
            or attribute.int_ is not None
            or attribute.bool_ is not None
        ):
            if features.list_attributes or not _has_list(attribute):
                continue
        elif attribute.version is not None and _version_problem(attribute.version) is None:
            continue
        try:
            attribute_value(name, attribute, features)
        except EvaluationError as error:
            return str(error)
    return None


def _has_list(attribute: DeviceAttribute) -> bool:
    lists = (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
    return any(values is not None for values in lists)
