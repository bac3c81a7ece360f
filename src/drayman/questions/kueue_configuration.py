"""Kueue's Configuration: from a file, or from the ConfigMap that an installation of Kueue mounts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.documents import read_documents
from drayman.api.errors import DocumentError
from drayman.api.struct import Json
from drayman.cluster import Client
from drayman.cluster.errors import ForbiddenError, NotFoundError
from drayman.cluster.resources import CONFIG_MAPS
from drayman.questions.errors import QuestionError
from drayman.quota.charging.mapping_rules import MappingsError, read_mappings
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.rules import Gates
from drayman.quota.settings import CONFIG_KEY, CONFIG_MAP, KUEUE_NAMESPACE

GROUP: Final = "config.kueue.x-k8s.io/"


def configuration_in(name: str, data: bytes) -> dict[str, Json]:
    """The Configuration in a file, by itself or in a ConfigMap; `name` is what errors call the file. Raises QuestionError."""
    try:
        found = list(_configurations(name, data))
    except DocumentError as error:
        raise QuestionError(str(error)) from error
    if len(found) != 1:
        number = "more than one" if found else "no"
        raise QuestionError(f"{name}: has {number} Configuration of {GROUP}v1beta2")
    return found[0]


async def configuration_of(client: Client) -> dict[str, Json] | None:
    """The Configuration that the queues of a cluster work by; None if there is none, or none that may be read."""
    try:
        value = await client.get(CONFIG_MAPS, CONFIG_MAP, KUEUE_NAMESPACE)
    except (NotFoundError, ForbiddenError):
        return None
    text = (value.get("data") or {}).get(CONFIG_KEY)
    if not isinstance(text, str):
        return None
    return configuration_in(f"configmap {KUEUE_NAMESPACE}/{CONFIG_MAP}", text.encode())


def mappings_in(name: str, configuration: Json, gates: Gates | None = None) -> DeviceClassMappings:
    """The device class mappings of a Configuration. Raises QuestionError, which names every field that is wrong."""
    try:
        return read_mappings(configuration, gates, strict=True)
    except MappingsError as error:
        raise QuestionError("\n".join(f"{name}: {each}" for each in error.errors)) from error


def gates_in(configuration: Json) -> Gates:
    """The feature gates that a Configuration sets, as Kueue understands them."""
    given = (configuration or {}).get("featureGates")
    return Gates.of_kueue(given if isinstance(given, dict) else {})


def _configurations(name: str, data: bytes) -> Iterator[dict[str, Json]]:
    for document in read_documents(name, data):
        value = document.value
        version, kind = str(value.get("apiVersion", "")), value.get("kind")
        if version.startswith(GROUP) and kind == "Configuration":
            yield value
        elif (version, kind) == ("v1", "ConfigMap"):
            text = (value.get("data") or {}).get(CONFIG_KEY)
            if isinstance(text, str):
                yield from _configurations(f"{name}: {CONFIG_KEY}", text.encode())
