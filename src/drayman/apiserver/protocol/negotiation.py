"""Which form an answer takes: JSON or YAML, whole objects, metadata or a table, compact or for people.

Responses are never protobuf: every client that prefers it also accepts JSON, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.protocol.exchange import JSON_TYPE, Request

YAML_TYPE: Final = "application/yaml"
PROTOBUF_TYPE: Final = "application/vnd.kubernetes.protobuf"
SERVED: Final = (JSON_TYPE, YAML_TYPE)
META_GROUP: Final = "meta.k8s.io"
PEOPLE: Final = ("curl", "Wget", "Mozilla")
"""User agents that get indented JSON."""

Shape = Literal["object", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]
_SHAPES: Final = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_VERSIONS: Final = ("v1", "v1beta1")
_KEPT: Final = 128
"""Number of media types that are cached. Clients send the same few with every request."""


@dataclass(frozen=True, slots=True)
class MediaType:
    type: str
    parameters: Mapping[str, str]
    quality: float = 1.0


@dataclass(frozen=True, slots=True)
class View:
    """The form of an answer."""

    encoding: Literal["json", "yaml"] = "json"
    shape: Shape = "object"
    version: str = "v1"
    pretty: bool = False

    @property
    def content_type(self) -> str:
        return JSON_TYPE if self.encoding == "json" else YAML_TYPE

    @property
    def is_plain(self) -> bool:
        """Stored bytes can be sent as they are."""
        return self.encoding == "json" and self.shape == "object" and not self.pretty


def negotiate(request: Request, *, shapes: bool = True, watch: bool = False) -> View:
    """The first alternative of Accept that can be served. Raises StatusError 406."""
    pretty = wants_pretty(request)
    accept = request.header("accept")
    if not accept or accept in (JSON_TYPE, "*/*"):
        return View(pretty=pretty)
    unknown_shape = False
    for media in parse_accept(accept):
        if media.type in (JSON_TYPE, "*/*", "application/*"):
            encoding: Literal["json", "yaml"] = "json"
        elif media.type == YAML_TYPE and not watch:
            encoding = "yaml"
        else:
            continue
        shape = media.parameters.get("as", "object")
        if shape == "object":
            return View(encoding, pretty=pretty)
        version = media.parameters.get("v", "")
        group = media.parameters.get("g", "")
        if shapes and shape in _SHAPES and group == META_GROUP and version in _VERSIONS:
            return View(encoding, shape, version, pretty=pretty)  # type: ignore[arg-type]
        unknown_shape = True
    raise not_acceptable(watch=watch, unknown_shape=unknown_shape)


def not_acceptable(*, watch: bool = False, unknown_shape: bool = False) -> StatusError:
    served = (JSON_TYPE,) if watch else SERVED
    if unknown_shape:
        accepted = ", ".join(served)
        message = f"only the following media types are accepted: {accepted}"
    else:
        message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(served)}"
    return StatusError(406, "NotAcceptable", message)


def wants_pretty(request: Request) -> bool:
    asked = request.query.flag("pretty")
    return request.header("user-agent").startswith(PEOPLE) if asked is None else asked


def parse_accept(header: str) -> list[MediaType]:
    """The alternatives of an Accept header, best first, in the given order where they are equally good."""
    found = [parse_media_type(part) for part in header.split(",") if part.strip()]
    return sorted(found, key=lambda media: -media.quality)


@lru_cache(maxsize=_KEPT)
def parse_media_type(text: str) -> MediaType:
    """A media type and its parameters. A quality that is not a number counts as the best."""
    type_, *rest = (part.strip() for part in text.split(";"))
    parameters = {}
    for part in rest:
        name, _, value = part.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    quality = parameters.pop("q", "1")
    try:
        return MediaType(type_.lower(), parameters, float(quality))
    except ValueError:
        return MediaType(type_.lower(), parameters)
