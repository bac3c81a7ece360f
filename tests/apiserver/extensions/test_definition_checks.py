"""Definitions that are refused: the field and reason of every error."""

from __future__ import annotations

import pytest

SCHEMA = "spec.validation.openAPIV3Schema"
SPEC = f"{SCHEMA}.properties[spec]"
FIELD = f"{SPEC}.properties[f]"


def _field(value):
    return lambda spec: _schema(spec)["properties"]["spec"]["properties"].update(f=value)


def _schema(spec):
    return spec["versions"][0]["schema"]["openAPIV3Schema"]


def _rules(*rules):
    def change(spec):
        _schema(spec)["properties"]["spec"]["x-kubernetes-validations"] = list(rules)

    return change


def _set(**members):
    return lambda spec: spec.update(members)


def _version(**members):
    return lambda spec: spec["versions"][0].update(members)


REQUIRED, INVALID = "FieldValueRequired", "FieldValueInvalid"
FORBIDDEN, UNSUPPORTED = "FieldValueForbidden", "FieldValueNotSupported"
RULE = f"{SPEC}.x-kubernetes-validations[0]"
HOOK = "spec.conversion.webhookClientConfig"


def _hook(**client):
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    return _set(conversion={"strategy": "Webhook", "webhook": webhook})


CASES = {
    "a literal as the name of a field": (
        lambda spec: (_field({"type": "string"})(spec), _rules({"rule": "self.true == 'a'"})(spec)),
        {(f"{RULE}.rule", INVALID)},
    ),
    "a reserved word that is no field": (
        _rules({"rule": "has(self.namespace)"}),
        {(f"{RULE}.rule", INVALID)},
    ),
    "webhook at a plain address": (
        _hook(url="http://u:p@host/x?q#f"),
        {(f"{HOOK}.url", INVALID)},
    ),
    "webhook at no service, which upstream reports the other way round": (
        _hook(service={"name": "s", "port": 70000, "path": "a//B_"}),
        {
            (f"{HOOK}.service.name", REQUIRED),
            (f"{HOOK}.service.port", INVALID),
            (f"{HOOK}.service.path", INVALID),
        },
    ),
    "webhook of two kinds": (
        _hook(url="https://host", service={"name": "s", "namespace": "n"}),
        {(HOOK, REQUIRED)},
    ),
    "reviews nobody asks for": (
        _set(conversion={"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        {("spec.conversion.conversionReviewVersions", FORBIDDEN)},
    ),
    "reviews of no known version": (
        _set(
            conversion={
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {"url": "https://host"},
                    "conversionReviewVersions": ["v3", "v3", "V"],
                },
            }
        ),
        {
            ("spec.conversion.conversionReviewVersions", INVALID),
            ("spec.conversion.conversionReviewVersions[1]", INVALID),
            ("spec.conversion.conversionReviewVersions[2]", INVALID),
        },
    ),
    "no scope": (_set(scope=""), {("spec.scope", REQUIRED)}),
    "no kind": (
        lambda spec: spec["names"].pop("kind"),
        {
            ("spec.names.kind", REQUIRED),
            ("spec.names.singular", REQUIRED),
            ("spec.names.listKind", REQUIRED),
        },
    ),
    "kind with a dot": (
        lambda spec: spec["names"].update(kind="A.b", singular="x"),
        {("spec.names.kind", INVALID), ("spec.names.listKind", INVALID)},
    ),
    "bad short name": (
        lambda spec: spec["names"].update(shortNames=["A"]),
        {("spec.names.shortNames[0]", INVALID)},
    ),
    "group without a dot": (
        _set(group="example"),
        {("spec.group", INVALID), ("metadata.name", INVALID)},
    ),
    "unknown strategy": (
        _set(conversion={"strategy": "Magic"}),
        {("spec.conversion.strategy", UNSUPPORTED)},
    ),
    "webhook without a client": (
        _set(conversion={"strategy": "Webhook"}),
        {
            ("spec.conversion.webhookClientConfig", REQUIRED),
            ("spec.conversion.conversionReviewVersions", REQUIRED),
        },
    ),
    "no schema": (
        lambda spec: spec["versions"][0].pop("schema"),
        {("spec.versions[0].schema.openAPIV3Schema", REQUIRED)},
    ),
    "warning without deprecation": (
        _version(deprecationWarning="old"),
        {("spec.versions[0].deprecationWarning", INVALID)},
    ),
    "replicas elsewhere": (
        _version(subresources={"scale": {"specReplicasPath": ".x", "statusReplicasPath": "y"}}),
        {
            ("spec.subresources.scale.specReplicasPath", INVALID),
            ("spec.subresources.scale.statusReplicasPath", INVALID),
        },
    ),
    "column of no type": (
        _version(additionalPrinterColumns=[{"name": "A", "type": "x", "jsonPath": ".a"}]),
        {("spec.additionalPrinterColumns[0].type", INVALID)},
    ),
    "selectable object": (
        _version(selectableFields=[{"jsonPath": ".spec"}]),
        {("spec.selectableFields[0].jsonPath", INVALID)},
    ),
    "unknown type": (_field({"type": "float"}), {(f"{FIELD}.type", UNSUPPORTED)}),
    "list without items": (_field({"type": "array"}), {(f"{FIELD}.items", REQUIRED)}),
    "unique items": (
        _field({"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        {(f"{FIELD}.uniqueItems", FORBIDDEN)},
    ),
    "reference": (_field({"type": "object", "$ref": "#/x"}), {(f"{FIELD}.$ref", FORBIDDEN)}),
    "type in an alternative": (
        _field({"type": "string", "anyOf": [{"type": "string"}]}),
        {(f"{FIELD}.anyOf[0].type", FORBIDDEN)},
    ),
    "alternative about another field": (
        _field({"type": "object", "oneOf": [{"properties": {"a": {"minimum": 1}}}]}),
        {(f"{FIELD}.properties[a]", REQUIRED)},
    ),
    "bad pattern": (_field({"type": "string", "pattern": "("}), {(f"{FIELD}.pattern", INVALID)}),
    "default of the wrong type": (
        _field({"type": "string", "default": 5}),
        {(f"{FIELD}.default", "FieldValueTypeInvalid")},
    ),
    "default with unknown fields": (
        _field({"type": "object", "properties": {}, "default": {"a": 1}}),
        {(f"{FIELD}.default", INVALID)},
    ),
    "preserving false": (
        _field({"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
        {(f"{FIELD}.x-kubernetes-preserve-unknown-fields", INVALID)},
    ),
    "set of objects": (
        _field({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
        {(f"{FIELD}.items.x-kubernetes-map-type", INVALID)},
    ),
    "optional map key": (
        _field(
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}}},
            }
        ),
        {(f"{FIELD}.items.properties[k].default", REQUIRED)},
    ),
    "empty rule": (_rules({"rule": " "}), {(f"{RULE}.rule", REQUIRED)}),
    "rule that gives a number": (_rules({"rule": "self.size"}), {(f"{RULE}.rule", INVALID)}),
    "rule about nothing": (_rules({"rule": "self.x == 1"}), {(f"{RULE}.rule", INVALID)}),
    "unknown reason": (
        _rules({"rule": "true", "reason": "Because"}),
        {(f"{RULE}.reason", UNSUPPORTED)},
    ),
    "field path to nowhere": (
        _rules({"rule": "true", "fieldPath": ".x"}),
        {(f"{RULE}.fieldPath", INVALID)},
    ),
    "optional old self unused": (
        _rules({"rule": "true", "optionalOldSelf": True}),
        {(f"{RULE}.optionalOldSelf", INVALID)},
    ),
    "old self in a plain list": (
        _field(
            {
                "type": "array",
                "maxItems": 4,
                "items": {
                    "type": "integer",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
                },
            }
        ),
        {(f"{FIELD}.items.x-kubernetes-validations[0].rule", INVALID)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(play, definition, paths, case):
    """A definition with this mistake is refused, and exactly for it."""
    change, causes = CASES[case]
    change(definition["spec"])

    async def scenario(api):
        answer = await api("POST", paths[0], definition)
        assert (answer.status, answer.causes) == (422, causes)

    play(scenario)


ACCEPTED = {
    "integer or string as controller-gen writes it": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^[0-9]+$",
        "x-kubernetes-int-or-string": True,
    },
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "one of several": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "atomic selector": {
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}
        },
    },
    "nullable with enum": {"type": "string", "nullable": True, "enum": ["a", None]},
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(play, definition, paths, case):
    """What vendors' definitions use is accepted."""
    _field(ACCEPTED[case])(definition["spec"])

    async def scenario(api):
        answer = await api("POST", paths[0], definition)
        assert answer.status == 201, answer.body

    play(scenario)


def test_unrecognized_formats_are_warned_about(play, definition, paths):
    """A format that means nothing is accepted with a warning."""
    _field({"type": "string", "format": "phone"})(definition["spec"])

    async def scenario(api):
        answer = await api("POST", paths[0], definition)
        assert (answer.status, answer.warnings) == (201, ('unrecognized format "phone"',))

    play(scenario)
