"""Decoding of JSON bodies: what they become, and what is said about those that are wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.schema.recorded import vectors
from drayman.api.errors import BodyError, MalformedError
from drayman.api.schema import (
    Message,
    decode_strict,
    identify,
    identify_tree,
    schema_for,
    strict_error,
)
from drayman.api.schema.exact import MAX_PROBLEMS, decode_exactly
from drayman.api.syntax.json_text import parse_tree
from drayman.api.syntax.yaml_text import parse_yaml_tree, warning_texts


def kind(name: str, group: str = "", version: str = "v1") -> Message:
    found = schema_for(group, version, name)
    assert found is not None
    return found


POD, CONFIG_MAP, SECRET, SERVICE = map(kind, ("Pod", "ConfigMap", "Secret", "Service"))
SLICE = kind("ResourceSlice", "resource.k8s.io")
LEASE = kind("Lease", "coordination.k8s.io")
DEFINITION = kind("CustomResourceDefinition", "apiextensions.k8s.io")


@pytest.mark.parametrize(
    ("message", "body", "value"),
    [
        pytest.param(POD, b'{"metadata":{"name":null}}', {}, id="null is absent"),
        pytest.param(POD, b'{"spec":{"hostNetwork":false}}', {}, id="zero is absent"),
        pytest.param(
            POD,
            b'{"spec":{"terminationGracePeriodSeconds":0}}',
            {"spec": {"terminationGracePeriodSeconds": 0}},
            id="a pointer to zero is not",
        ),
        pytest.param(
            POD,
            b'{"spec":{"volumes":[{"emptyDir":{}}]}}',
            {"spec": {"volumes": [{"emptyDir": {}}]}},
            id="nor to an empty struct",
        ),
        pytest.param(
            POD, b'{"spec":{"containers":[]}}', {"spec": {"containers": []}}, id="empty list"
        ),
        pytest.param(
            POD,
            b'{"spec":{"containers":[null]}}',
            {"spec": {"containers": [{}]}},
            id="null in a list is a zero struct",
        ),
        pytest.param(CONFIG_MAP, b'{"data":{"a":null}}', {"data": {"a": ""}}, id="null in a map"),
        pytest.param(
            CONFIG_MAP,
            b'{"binaryData":{"a":null}}',
            {"binaryData": {"a": ""}},
            id="null in a map of bytes",
        ),
        pytest.param(
            POD,
            b'{"spec":{"overhead":{"cpu":0.5,"memory":" 1024Mi "}}}',
            {"spec": {"overhead": {"cpu": "500m", "memory": "1Gi"}}},
            id="quantities are canonical",
        ),
        pytest.param(
            POD,
            b'{"metadata":{"creationTimestamp":"2024-05-01T12:00:00.9+02:00"}}',
            {"metadata": {"creationTimestamp": "2024-05-01T10:00:00Z"}},
            id="times are in UTC, to the second",
        ),
        pytest.param(
            LEASE,
            b'{"spec":{"renewTime":"2024-05-01T12:00:00.000001Z"}}',
            {"spec": {"renewTime": "2024-05-01T12:00:00.000001Z"}},
            id="or to the microsecond",
        ),
        pytest.param(
            SERVICE,
            b'{"spec":{"ports":[{"targetPort":"http"},{"targetPort":8080}]}}',
            {"spec": {"ports": [{"targetPort": "http"}, {"targetPort": 8080}]}},
            id="int or string",
        ),
        pytest.param(SECRET, b'{"data":{"a":"Yg=\\n="}}', {"data": {"a": "Yg=="}}, id="base64"),
        pytest.param(
            SECRET, b'{"data":{"a":[98]}}', {"data": {"a": "Yg=="}}, id="bytes as numbers"
        ),
        pytest.param(
            CONFIG_MAP, b'{"data":{"a":"\\ud800"}}', {"data": {"a": "\ufffd"}}, id="surrogate"
        ),
        pytest.param(
            CONFIG_MAP, b'{"data":{"a":"\xff"}}', {"data": {"a": "\ufffd"}}, id="not UTF-8"
        ),
        pytest.param(CONFIG_MAP, b"null", {}, id="no object at all"),
        pytest.param(
            DEFINITION,
            b'{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"additionalProperties":false,'
            b'"items":{"type":"string","nope":1},"default":{"a":1.5}}}}]}}',
            {
                "spec": {
                    "versions": [
                        {
                            "name": "v1",
                            "schema": {
                                "openAPIV3Schema": {
                                    "additionalProperties": False,
                                    "items": {"type": "string"},
                                    "default": {"a": 1.5},
                                }
                            },
                        }
                    ]
                }
            },
            id="JSON schemas",
        ),
    ],
)
def test_values(message: Message, body: bytes, value: Any) -> None:
    """A body becomes a value without what could not be told from its absence."""
    assert decode_strict(message, body) == (value, ())


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        (b'{"x":1}', ('unknown field "x"',)),
        (b'{"Data":{}}', ('unknown field "Data"',)),
        (b'{"data":{"a":"1","a":"2"}}', ('duplicate field "data.a"',)),
        (b'{"metadata":{"x":1,"x":2}}', ('unknown field "metadata.x"',)),
        (b'{"data":{},"data":{}}', ('duplicate field "data"',)),
        (b'{"x\\"":1}', (r'unknown field "x\""',)),
        (
            b'{"metadata":{"ownerReferences":[{},{"y":1}]},"z":1}',
            ('unknown field "metadata.ownerReferences[1].y"', 'unknown field "z"'),
        ),
    ],
)
def test_problems(body: bytes, problems: tuple[str, ...]) -> None:
    """Unknown and duplicate fields are reported once each, with their path, in the order of the body."""
    assert decode_strict(CONFIG_MAP, body).problems == problems


def test_duplicates_are_decoded_into_the_same_place() -> None:
    """Of a struct or map that is there twice both count; of a text or list the last."""
    body = b'{"metadata":{"name":"a","finalizers":["x"]},"metadata":{"name":"b","finalizers":["y"],"namespace":"n"}}'
    value = decode_strict(CONFIG_MAP, body).value
    assert value == {"metadata": {"name": "b", "finalizers": ["y"], "namespace": "n"}}


def test_problems_are_bounded() -> None:
    """A body of nothing but unknown fields is not answered at full length."""
    body = msgspec.json.encode({f"x{n}": 1 for n in range(10 * MAX_PROBLEMS)})
    assert len(decode_strict(CONFIG_MAP, body).problems) == MAX_PROBLEMS


@pytest.mark.parametrize(
    ("message", "body", "error"),
    [
        pytest.param(
            CONFIG_MAP,
            b'{"data":5}',
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string",
            id="number for a map",
        ),
        pytest.param(
            POD,
            b'{"spec":{"containers":{}}}',
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
            id="object for a list",
        ),
        pytest.param(
            POD,
            b'{"spec":{"priority":2147483648}}',
            "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
            id="number too large",
        ),
        pytest.param(
            POD,
            b'{"spec":{"restartPolicy":true}}',
            "json: cannot unmarshal bool into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
            id="named type",
        ),
        pytest.param(
            POD,
            b'{"spec":{"volumes":[{"emptyDir":[]}]}}',
            "json: cannot unmarshal array into Go struct field Volume.spec.volumes.VolumeSource.emptyDir"
            " of type v1.EmptyDirVolumeSource",
            id="inlined field",
        ),
        pytest.param(
            SERVICE,
            b'{"spec":{"ports":[{"targetPort":1.5}]}}',
            "json: cannot unmarshal number 1.5 into Go struct field ServicePort.spec.ports.targetPort of type int32",
            id="int or string",
        ),
        pytest.param(
            POD,
            b'{"metadata":{"creationTimestamp":5}}',
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
            id="number for a time",
        ),
        pytest.param(
            POD,
            b'{"metadata":{"labels":5},"spec":{"overhead":{"cpu":"x"}}}',
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a refused value goes before a wrong type",
        ),
        pytest.param(
            POD,
            b'{"metadata":{"labels":5},"spec":5}',
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            id="the first wrong type counts",
        ),
        pytest.param(
            SECRET, b'{"data":{"a":"Y#=="}}', "illegal base64 data at input byte 1", id="base64"
        ),
        pytest.param(
            SECRET, b'{"data":{"a":"YWJ"}}', "illegal base64 data at input byte 0", id="unpadded"
        ),
        pytest.param(
            DEFINITION,
            b'{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"additionalProperties":5}}}]}}',
            "boolean or JSON schema expected",
            id="schema or bool",
        ),
        pytest.param(
            POD, b"5", "json: cannot unmarshal number into Go value of type v1.Pod", id="no object"
        ),
    ],
)
def test_errors(message: Message, body: bytes, error: str) -> None:
    """A value of the wrong type is refused in the words clients know."""
    with pytest.raises(MalformedError) as caught:
        decode_strict(message, body)
    assert str(caught.value) == error


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def near_pods() -> st.SearchStrategy[Any]:
    """Objects that resemble a pod: right names, now and then a wrong value."""
    texts = st.sampled_from(["", "a", "2024-05-01T10:00:00Z", "1", "500m"])
    wrong = st.one_of(texts, texts, texts, JSON_VALUES)
    metadata = st.fixed_dictionaries(
        {},
        optional={
            "name": wrong,
            "labels": st.dictionaries(texts, wrong),
            "creationTimestamp": wrong,
            "x": wrong,
        },
    )
    container = st.fixed_dictionaries(
        {},
        optional={
            "name": wrong,
            "command": st.lists(wrong, max_size=2),
            "stdin": st.booleans() | wrong,
        },
    )
    spec = st.fixed_dictionaries(
        {},
        optional={
            "containers": st.lists(container | wrong, max_size=2),
            "overhead": st.dictionaries(texts, wrong, max_size=2),
            "priority": st.integers(-(2**33), 2**33) | wrong,
            "hostNetwork": st.booleans() | wrong,
        },
    )
    return st.fixed_dictionaries({}, optional={"metadata": metadata, "spec": spec | wrong})


@given(near_pods())
def test_both_decoders_agree(pod: Any) -> None:
    """What the quick decoder returns, the exact one returns too; and text and value decode to the same."""

    def outcome(decode: Any, *args: Any) -> Any:
        try:
            return tuple(decode(*args))
        except BodyError as error:
            return str(error)

    body = msgspec.json.encode(pod)
    exact = outcome(decode_exactly, POD, parse_tree(body))
    assert outcome(decode_strict, POD, body) == exact
    if not isinstance(exact, str):
        assert outcome(decode_strict, POD, msgspec.json.decode(body)) == exact
        assert decode_strict(POD, exact[0]) == (exact[0], ())


@given(
    st.binary(max_size=40)
    | st.text(alphabet='{}[]",:0123456789.eE-truefalsn\\ ', max_size=30).map(str.encode)
)
def test_any_bytes_are_decoded_or_refused(body: bytes) -> None:
    """No body makes decoding fail in any other way than with a reason for the client."""
    refused = ""
    value: dict[str, Any] = {}
    try:
        identify(body)
        value = decode_strict(CONFIG_MAP, body).value
    except BodyError as error:
        refused = str(error) or "without a reason"
    assert refused != "without a reason"
    assert value.keys() <= CONFIG_MAP.fields.keys()


ERROR_MARKS = (
    "strict decoding",
    "cannot unmarshal",
    "json parse",
    "parsing time",
    "quantities must",
    "yaml:",
)


def decoding_outcome(step: dict[str, Any]) -> tuple[str, tuple[str, ...]] | None:
    """What decoding says about the body of a step: an error, or the warnings. None where the kind is not built in."""
    media_type = step.get("headers", {}).get("Content-Type", "application/json")
    raw = step["raw"].encode() if "raw" in step else msgspec.json.encode(step["body"])
    strict = step.get("query", {}).get("fieldValidation") == "Strict"
    try:
        tree, problems = parse_yaml_tree(raw) if "yaml" in media_type else (raw, ())
        identity = identify_tree(tree) if "yaml" in media_type else identify(raw)
        group, _, version = identity.api_version.rpartition("/")
        message = schema_for(group, version, identity.kind)
        if message is None:
            return None
        problems += decode_strict(message, tree).problems
    except BodyError as error:
        return str(error), ()
    return (strict_error(problems), ()) if strict and problems else ("", warning_texts(problems))


def test_recorded_bodies() -> None:
    """Every body that was recorded is decoded, refused or warned about as it was then."""
    compared = 0
    for vector in vectors():
        for step in vector["steps"]:
            expected, outcome = step["expect"], None
            if step["method"] in ("POST", "PUT") and ("raw" in step or "body" in step):
                outcome = decoding_outcome(step)
            if outcome is None:
                continue
            error, warnings = outcome
            message = expected.get("message", "")
            compared += 1
            if any(mark in message for mark in ERROR_MARKS):
                assert error, vector["name"]
                assert error in message, vector["name"]
            else:
                assert not error, vector["name"]
            if (
                expected["status"] < 300
                and step.get("query", {}).get("fieldValidation") != "Ignore"
            ):
                recorded = [w for w in expected.get("warnings", ()) if "field" in w or "line" in w]
                assert list(warnings) == recorded, vector["name"]
    assert compared > 2000
