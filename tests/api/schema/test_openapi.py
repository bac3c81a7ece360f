"""The published OpenAPI: complete, and with what clients look for."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from drayman.api.schema.openapi import ServedResource, ServedSubresource
from drayman.api.schema.openapi.descriptions import (
    descriptions_of,
    field_description,
    message_description,
)
from drayman.api.schema.openapi.documents import (
    encode_document,
    openapi_v2,
    openapi_v3,
    openapi_v3_index,
)
from drayman.api.schema.openapi.gnostic import encode_gnostic
from drayman.api.schema.tables import package_messages

ALL = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
STATUS_VERBS = frozenset({"get", "patch", "update"})
CLAIMS = ServedResource(
    "resourceclaims",
    "ResourceClaim",
    True,
    ALL,
    (ServedSubresource("status", "resource.k8s.io", "v1", "ResourceClaim", STATUS_VERBS),),
)
DEPLOYMENTS = ServedResource(
    "deployments",
    "Deployment",
    True,
    ALL,
    (ServedSubresource("scale", "autoscaling", "v1", "Scale", STATUS_VERBS),),
)
WIDGETS = ServedResource(
    "widgets",
    "Widget",
    False,
    ALL,
    schema={"type": "object", "properties": {"spec": {"type": "object", "nullable": True}}},
)
DOCUMENTS = {
    "apis/resource.k8s.io/v1": openapi_v3("resource.k8s.io", "v1", [CLAIMS]),
    "apis/apps/v1": openapi_v3("apps", "v1", [DEPLOYMENTS]),
    "apis/example.com/v1": openapi_v3("example.com", "v1", [WIDGETS]),
    "api/v1": openapi_v3("", "v1", [ServedResource("pods", "Pod", True, ALL)]),
}


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from references(item)


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        yield from (item for method, item in path.items() if method != "parameters")


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_version_3_is_closed(document: dict[str, Any]) -> None:
    """Every schema that is referred to is there, and every operation has a name of its own."""
    prefix = "#/components/schemas/"
    assert {ref.removeprefix(prefix) for ref in references(document)} <= document["components"][
        "schemas"
    ].keys()
    names = [operation["operationId"] for operation in operations(document)]
    assert names
    assert len(names) == len(set(names))


def test_version_2_is_closed() -> None:
    """The same for version 2, which holds all group versions and nothing of version 3."""
    document = openapi_v2(list(DOCUMENTS.values()))
    assert {ref.removeprefix("#/definitions/") for ref in references(document)} <= document[
        "definitions"
    ].keys()
    assert set().union(*(each["paths"] for each in DOCUMENTS.values())) == document["paths"].keys()
    text = encode_document(document)
    for word in (b'"oneOf"', b'"allOf"', b'"requestBody"', b'"content":', b"#/components"):
        assert word not in text


def test_patches_of_every_kind_take_field_validation() -> None:
    """kubectl looks for this before it lets the server validate."""
    for document in (*DOCUMENTS.values(), openapi_v2(list(DOCUMENTS.values()))):
        for path in document["paths"].values():
            if (patch := path.get("patch")) is not None:
                assert patch["x-kubernetes-group-version-kind"]["kind"]
                assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


def test_schemas_tell_how_to_merge() -> None:
    """Lists carry their merge key, strategy and type; kinds tell what they are."""
    schemas = DOCUMENTS["apis/apps/v1"]["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-list-type"] == "map"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    kind = {"group": "apps", "kind": "Deployment", "version": "v1"}
    assert schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"] == [kind]
    assert (
        schemas["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"]["x-kubernetes-map-type"]
        == "atomic"
    )
    scale = {"group": "autoscaling", "kind": "Scale", "version": "v1"}
    assert schemas["io.k8s.api.autoscaling.v1.Scale"]["x-kubernetes-group-version-kind"] == [scale]


def test_custom_resources_bring_their_schema() -> None:
    """A custom kind is published under its own name, without strategic merge patch."""
    document = DOCUMENTS["apis/example.com/v1"]
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}
    patch = document["paths"]["/apis/example.com/v1/widgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    built_in = DOCUMENTS["apis/apps/v1"]["paths"][
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    ]
    assert "application/strategic-merge-patch+json" in built_in["patch"]["requestBody"]["content"]


def test_a_kind_without_schema_is_refused() -> None:
    """What is neither built in nor custom cannot be published."""
    with pytest.raises(KeyError, match="Nope"):
        openapi_v3("apps", "v1", [ServedResource("nopes", "Nope", True, ALL)])


def test_index_names_each_document_by_its_hash() -> None:
    """Each document is found under its path and hash."""
    index = openapi_v3_index({path: path.upper() for path in DOCUMENTS})
    assert index["paths"].keys() == DOCUMENTS.keys()
    url = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
    assert url == "/openapi/v3/apis/apps/v1?hash=APIS/APPS/V1"


def fields(data: bytes) -> dict[int, list[Any]]:
    """The fields of a protobuf message by number."""
    found: dict[int, list[Any]] = {}
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        key = varint()
        value: Any = varint()
        if key & 7 == 2:
            value, position = data[position : position + value], position + value
        found.setdefault(key >> 3, []).append(value)
    return found


def test_protobuf_holds_the_same_as_version_2() -> None:
    """Definitions and paths are found in the protobuf form, with their extensions as YAML."""
    document = openapi_v2(list(DOCUMENTS.values()))
    top = fields(encode_gnostic(document))
    assert top[1] == [b"2.0"]
    definitions = {}
    for named in fields(top[9][0])[1]:
        entry = fields(named)
        definitions[entry[1][0].decode()] = fields(entry[2][0])
    assert definitions.keys() == document["definitions"].keys()
    paths = {fields(named)[1][0].decode() for named in fields(top[8][0])[2]}
    assert paths == document["paths"].keys()
    claim = definitions["io.k8s.api.resource.v1.ResourceClaim"]
    extension = fields(claim[31][0])
    assert extension[1] == [b"x-kubernetes-group-version-kind"]
    value = msgspec.yaml.decode(fields(extension[2][0])[2][0])
    assert value == [{"group": "resource.k8s.io", "kind": "ResourceClaim", "version": "v1"}]
    names = {fields(named)[1][0].decode() for named in fields(claim[25][0])[1]}
    assert names == {"apiVersion", "kind", "metadata", "spec", "status"}


DATA = importlib.resources.files("drayman.api.schema") / "data"
PACKAGES = sorted(
    entry.name.removesuffix(".txt").replace("_", "/", 1)
    for entry in DATA.iterdir()
    if entry.name.endswith(".txt")
)
DESCRIBED = sorted(entry.name.removesuffix(".txt") for entry in (DATA / "descriptions").iterdir())


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2", "v1alpha3"])
def test_everything_about_devices_is_explained(version: str) -> None:
    """Every kind and field of resource.k8s.io has a description."""
    document = openapi_v3("resource.k8s.io", version, [])
    assert document["paths"] == {}
    for message in package_messages(f"resource/{version}").values():
        assert message_description(message), message
        for name in message.fields:
            assert field_description(message, name), (message, name)


@pytest.mark.parametrize("group", DESCRIBED)
def test_descriptions_are_of_what_exists(group: str) -> None:
    """No text is about a message or field that no version has, none is there twice, and each is a sentence or two."""
    known: dict[str, set[str]] = {}
    for package in PACKAGES:
        if package.partition("/")[0] == group:
            for message in package_messages(package).values():
                known.setdefault(message.name, set()).update(message.fields)
    texts = descriptions_of(group)
    if group != "shared":
        assert texts.keys() <= known.keys()
        for name, described in texts.items():
            assert described.fields.keys() <= known[name], name
    for described in texts.values():
        for text in (described.text, *described.fields.values()):
            assert text.endswith("."), text
            assert len(text) <= 140, text
        if described.like is not None:
            assert described.like[1] in descriptions_of(described.like[0])
    lines = (DATA / "descriptions" / f"{group}.txt").read_text().splitlines()
    names = [line.partition(":")[0].partition(" like ")[0] for line in lines if line[0] != " "]
    assert len(names) == len(set(names))
