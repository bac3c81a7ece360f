"""Objects of a definition: what is kept, what is refused, status, scale and versions."""

from __future__ import annotations

import pytest

MERGE = "application/merge-patch+json"


def _spec(definition, **properties):
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"].update(properties)
    return schema["properties"]["spec"]


RULE = {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self != 'bad'"}]}
REFUSED = {
    "wrong type": ({"size": "x"}, {("spec.size", "FieldValueTypeInvalid")}),
    "no whole number": (
        {"size": 1.5},
        {("spec.size", "FieldValueTypeInvalid"), ("<nil>", "FieldValueInvalid")},
    ),
    "below minimum": ({"size": 0}, {("spec.size", "FieldValueInvalid")}),
    "two at once": (
        {"size": 0, "color": 1},
        {("spec.size", "FieldValueInvalid"), ("spec.color", "FieldValueTypeInvalid")},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_values_against_the_schema(play, definition, widget, paths, case):
    """What the schema does not allow is refused, with the field and the reason of each error."""
    spec, causes = REFUSED[case]

    async def scenario(api):
        await api("POST", paths[0], definition)
        answer = await api("POST", paths[1], widget(**spec))
        assert (answer.status, answer.causes) == (422, causes)

    play(scenario)


def test_unknown_fields_are_pruned_and_told(play, definition, widget, paths):
    """Unknown fields go with a warning, or are an error where the client asks for that."""

    async def scenario(api):
        await api("POST", paths[0], definition)
        made = await api("POST", paths[1], widget(size=1, other=1))
        assert made.body["spec"] == {"size": 1, "color": "red"}
        assert made.warnings == ('unknown field "spec.other"',)
        strict = await api("POST", paths[1], widget("x", other=1), fieldValidation="Strict")
        assert strict.status == 400
        assert 'strict decoding error: unknown field "spec.other"' in strict.body["message"]

    play(scenario)


def test_rules_refuse_with_their_message(play, definition, widget, paths):
    """A rule that is false refuses; its message, expression, reason and field are used."""
    spec = _spec(definition, label=RULE)
    spec["x-kubernetes-validations"] = [
        {
            "rule": "!has(self.size) || self.size < 9",
            "messageExpression": "self.size == 9 ? 'nine' : 'many'",
            "reason": "FieldValueForbidden",
            "fieldPath": ".size",
        }
    ]

    async def scenario(api):
        await api("POST", paths[0], definition)
        answer = await api("POST", paths[1], widget(size=9))
        assert answer.body["details"]["causes"] == [
            {"reason": "FieldValueForbidden", "message": "Forbidden: nine", "field": "spec.size"}
        ]
        answer = await api("POST", paths[1], widget(label="bad"))
        (cause,) = answer.body["details"]["causes"]
        assert cause["message"] == "Invalid value: \"bad\": failed rule: self != 'bad'"

    play(scenario)


KEYWORDS = {
    "a reserved word as it is": "self.namespace == 'a'",
    "a reserved word between underscores": "self.__namespace__ == 'a'",
    "presence of a reserved word": "!has(self.namespace) || self.namespace.size() == 1",
    "an optional reserved word": "self.?namespace.orValue('a') == 'a'",
    "in objects of a list": "self.parts.all(p, !has(p.package) || p.package == 'a')",
    "a special character": "!has(self.a__dash__b) || self.a__dash__b == 'a'",
    "membership, where the type is left open": "'namespace' in dyn(self)",
}


@pytest.mark.parametrize("case", KEYWORDS)
def test_rules_read_fields_named_like_keywords(play, definition, widget, paths, case):
    """A rule names a field that is called like a reserved word of CEL plainly or between underscores, and judges its value."""
    text = {"type": "string"}
    parts = {
        "type": "array",
        "maxItems": 5,
        "items": {"type": "object", "properties": {"package": text}},
    }
    spec = _spec(definition, namespace=text, parts=parts, **{"a-b": text})
    spec["x-kubernetes-validations"] = [{"rule": KEYWORDS[case]}]
    right = {"namespace": "a", "parts": [{"package": "a"}, {}], "a-b": "a"}
    wrong = {"namespace": "bb", "parts": [{"package": "b"}], "a-b": "b"}
    if "in dyn" in KEYWORDS[case]:
        del wrong["namespace"]

    async def scenario(api):
        made = await api("POST", paths[0], definition)
        assert made.status == 201, made.body
        accepted = await api("POST", paths[1], widget("right", **right))
        assert accepted.status == 201, accepted.body
        refused = await api("POST", paths[1], widget("wrong", **wrong))
        assert refused.causes == {("spec", "FieldValueInvalid")}

    play(scenario)


def test_transition_rules_see_the_old_value(play, definition, widget, paths):
    """A rule about oldSelf holds on update only, and where there was a value."""
    rules = [{"rule": "self == oldSelf", "message": "fixed"}]
    _spec(definition, fixed={"type": "string", "x-kubernetes-validations": rules})

    async def scenario(api):
        await api("POST", paths[0], definition)
        await api("POST", paths[1], widget(size=1))
        first = await api("PATCH", f"{paths[1]}/w", {"spec": {"fixed": "a"}}, MERGE)
        assert first.status == 200
        second = await api("PATCH", f"{paths[1]}/w", {"spec": {"fixed": "b"}}, MERGE)
        assert second.causes == {("spec.fixed", "FieldValueInvalid")}

    play(scenario)


def test_what_was_wrong_before_does_not_block_other_changes(play, definition, widget, paths):
    """A tightened schema refuses changes of the field it concerns, not of others."""

    async def scenario(api):
        await api("POST", paths[0], definition)
        await api("POST", paths[1], widget(size=2))
        versions = definition["spec"]["versions"]
        _spec(definition)["properties"]["size"]["minimum"] = 5
        await api(
            "PATCH", f"{paths[0]}/widgets.example.com", {"spec": {"versions": versions}}, MERGE
        )
        other = await api("PATCH", f"{paths[1]}/w", {"spec": {"color": "blue"}}, MERGE)
        assert other.status == 200
        same = await api("PATCH", f"{paths[1]}/w", {"spec": {"size": 3}}, MERGE)
        assert same.causes == {("spec.size", "FieldValueInvalid")}

    play(scenario)


def test_the_status_has_an_endpoint_of_its_own(play, definition, widget, paths):
    """The main endpoint leaves the status alone, the status endpoint everything else; only the former counts generations."""

    async def scenario(api):
        await api("POST", paths[0], definition)
        body = {**widget(size=1), "status": {"phase": "A"}}
        assert "status" not in (await api("POST", paths[1], body)).body
        change = {"spec": {"size": 7}, "status": {"phase": "B"}}
        changed = (await api("PATCH", f"{paths[1]}/w/status", change, MERGE)).body
        assert (changed["spec"]["size"], changed["status"]) == (1, {"phase": "B"})
        assert changed["metadata"]["generation"] == 1
        changed = (await api("PATCH", f"{paths[1]}/w", change, MERGE)).body
        assert (changed["spec"]["size"], changed["metadata"]["generation"]) == (7, 2)

    play(scenario)


def test_scale_reads_and_writes_the_declared_paths(play, definition, widget, paths):
    """The scale shows replicas and selector of the object, and sets its replicas."""

    async def scenario(api):
        await api("POST", paths[0], definition)
        await api("POST", paths[1], widget(size=1, replicas=2))
        status = {"status": {"replicas": 1, "selector": "a=b"}}
        await api("PATCH", f"{paths[1]}/w/status", status, MERGE)
        scale = (await api("GET", f"{paths[1]}/w/scale")).body
        assert (scale["spec"], scale["status"]) == (
            {"replicas": 2},
            {"replicas": 1, "selector": "a=b"},
        )
        scale["spec"]["replicas"] = 5
        assert (await api("PUT", f"{paths[1]}/w/scale", scale)).status == 200
        assert (await api("GET", f"{paths[1]}/w")).body["spec"]["replicas"] == 5

    play(scenario)


def test_versions_are_pruned_and_validated_each_by_its_own_schema(play, definition, widget, paths):
    """An object written in one version reads as the other's schema has it, with the defaults of the stored one."""
    extra = {"type": "object", "required": ["only"], "properties": {"only": {"type": "string"}}}
    second = {
        "name": "v2",
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": extra}}},
    }
    definition["spec"]["versions"].append(second)
    other = paths[1].replace("v1", "v2")

    async def scenario(api):
        await api("POST", paths[0], definition)
        made = await api("POST", other, widget(version="v2", only="x"))
        assert made.status == 201, made.body
        assert (await api("GET", f"{paths[1]}/w")).body["spec"] == {"color": "red"}
        refused = await api("POST", other, widget("x", version="v2"))
        assert refused.causes == {("spec.only", "FieldValueRequired")}

    play(scenario)


def test_a_body_says_its_kind(play, definition, widget, paths):
    """Custom resources are not guessed from the address."""

    async def scenario(api):
        await api("POST", paths[0], definition)
        body = widget(size=1)
        del body["kind"]
        assert (await api("POST", paths[1], body)).status == 400

    play(scenario)


def test_embedded_resources_keep_their_metadata(play, definition, widget, paths):
    """An embedded resource needs kind and apiVersion, and has its metadata checked."""
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    _spec(definition, inner=embedded)

    async def scenario(api):
        await api("POST", paths[0], definition)
        inner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}}
        made = await api("POST", paths[1], widget(inner=inner))
        assert made.body["spec"]["inner"] == inner
        bad = {**inner, "metadata": {"labels": {"a b": "c"}}}
        del bad["kind"]
        refused = await api("POST", paths[1], widget("x", inner=bad))
        assert refused.causes == {
            ("spec.inner.kind", "FieldValueRequired"),
            ("spec.inner.metadata.labels", "FieldValueInvalid"),
        }

    play(scenario)
