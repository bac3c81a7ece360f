"""Reading the configuration of devices by the classes that a driver declares for it.

What a class does not declare is refused, because a mistyped field would otherwise do nothing, silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self

from msgspec.structs import fields

from drayman.api.carrying import unknown_fields
from drayman.api.codec import convert
from drayman.api.errors import ApiError
from drayman.api.resource import DeviceAllocationConfiguration
from drayman.api.shape import shape_of
from drayman.api.struct import ApiStruct, Json

_FROM_CLASS: Final = "FromClass"


class ConfigError(Exception):
    """A configuration that a driver does not accept. The message names the field."""


class Config(ApiStruct):
    """Base of a driver's configuration classes. Without a value every field has its default.

    A class with the fields `api_version` and `kind`, given by `always(...)`, is recognised by them.
    """

    def problems(self) -> Iterable[str]:
        """What is wrong with the values, each problem with its field. For drivers to override."""
        return ()

    def completed(self) -> Self:
        """The same with what follows from its values filled in. For drivers to override."""
        return self


Identity = tuple[str, str]
"""apiVersion and kind; both empty where a driver's configuration has none."""


def identity_of(type_: type[Config]) -> Identity:
    """How a configuration class is recognised."""
    default = type_()
    return getattr(default, "api_version", ""), getattr(default, "kind", "")


def unreadable_fields(type_: type[Config]) -> Iterator[str]:
    """The fields of a class whose types no JSON can be read into, or that have no default, each with the reason."""
    for each in fields(type_):
        if each.required:
            yield f"{each.name}: has no default, and a claim need not give a configuration"
        try:
            shape_of(each.type)
        except (TypeError, ValueError, LookupError) as error:
            yield f"{each.name}: {error}"


def decode(parameters: Json, types: Sequence[type[Config]]) -> Config:
    """The configuration that parameters describe, by one of a driver's classes. Raises ConfigError."""
    if not isinstance(parameters, dict):
        raise ConfigError("the parameters are no object")
    type_ = _type_of(parameters, types)
    unknown = list(unknown_fields(type_, parameters))
    if unknown:
        raise ConfigError(f"unknown field{'s' * (len(unknown) > 1)} {', '.join(unknown)}")
    try:
        found = convert(type_, parameters)
    except ApiError as error:
        raise ConfigError(str(error)) from error
    problems = list(found.problems())
    if problems:
        raise ConfigError("; ".join(problems))
    return found.completed()


def _type_of(parameters: dict[str, Json], types: Sequence[type[Config]]) -> type[Config]:
    if not types:
        raise ConfigError("the driver takes no configuration")
    known = {identity_of(type_): type_ for type_ in types}
    if ("", "") in known:
        return known["", ""]
    named = (parameters.get("apiVersion", ""), parameters.get("kind", ""))
    if named in known:
        return known[named]
    listed = " or ".join(_title(*identity) for identity in known)
    raise ConfigError(f"expected {listed}, got {_title(*named)}")


def _title(version: Json, kind: Json) -> str:
    return f"{kind or 'no kind'} of {version or 'no apiVersion'}"


class DecodedConfigs:
    """The configurations of an allocation that are for one driver, by precedence: classes first, then the claim, later ones winning."""

    def __init__(
        self,
        driver: str,
        types: Sequence[type[Config]],
        entries: Sequence[DeviceAllocationConfiguration],
    ) -> None:
        """Decodes all of them, also those that others override. Raises ConfigError, which says where the entry comes from."""
        self._decoded: list[tuple[tuple[str, ...], Config]] = []
        for entry in sorted(entries, key=lambda each: each.source != _FROM_CLASS):
            if entry.opaque is None or entry.opaque.driver != driver:
                continue
            try:
                found = decode(entry.opaque.parameters, types)
            except ConfigError as error:
                raise ConfigError(f"configuration {_origin(entry)}: {error}") from error
            self._decoded.append((entry.requests, found))

    def for_device(self, request: str, type_: type[Config] | None) -> Config | None:
        """The configuration of a device that was allocated for a request, of the class that devices like it take.

        Raises ConfigError if an entry names the request and is of another class; one for all requests passes over devices of other kinds.
        """
        chosen: Config | None = None
        for requests, config in self._decoded:
            if requests and not _names(requests, request):
                continue
            if type_ is not None and isinstance(config, type_):
                chosen = config
            elif requests:
                wanted = "none" if type_ is None else type_.__name__
                raise ConfigError(
                    f"request {request}: a {type(config).__name__} is given, and the device takes {wanted}"
                )
        if chosen is None and type_ is not None:
            return type_().completed()
        return chosen


def _names(requests: Iterable[str], request: str) -> bool:
    """A request with alternatives is named as a whole, or one of the alternatives is."""
    return any(name in (request, request.partition("/")[0]) for name in requests)


def _origin(entry: DeviceAllocationConfiguration) -> str:
    source = "of the class" if entry.source == _FROM_CLASS else "of the claim"
    return f"{source} for {', '.join(entry.requests)}" if entry.requests else source
