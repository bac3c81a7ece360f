"""Definitions come and go, and their resources with them."""

from __future__ import annotations

MERGE = "application/merge-patch+json"


def test_a_definition_is_established_at_once(play, definition, paths):
    """The answer to a creation already has accepted names, both conditions and the stored version."""

    async def scenario(api):
        made = (await api("POST", paths[0], definition)).body
        conditions = {c["type"]: c["status"] for c in made["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert made["status"]["acceptedNames"] == {
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "listKind": "WidgetList",
            "shortNames": ["wd"],
        }
        assert made["status"]["storedVersions"] == ["v1"]
        assert made["spec"]["conversion"] == {"strategy": "None"}

    play(scenario)


def test_the_next_request_finds_the_resource(play, definition, widget, paths):
    """An object can be created right after its definition, and discovery lists it."""

    async def scenario(api):
        assert (await api("GET", paths[1])).status == 404
        await api("POST", paths[0], definition)
        made = await api("POST", paths[1], widget(size=2))
        assert (made.status, made.body["spec"]) == (201, {"size": 2, "color": "red"})
        listed = (await api("GET", "/apis/example.com/v1")).body["resources"]
        assert [r["name"] for r in listed] == ["widgets", "widgets/scale", "widgets/status"]

    play(scenario)


def test_a_changed_schema_holds_for_the_next_write(play, definition, widget, paths):
    """What a definition newly requires is refused when missing, without a restart."""

    async def scenario(api):
        await api("POST", paths[0], definition)
        change = {"spec": {"versions": definition["spec"]["versions"]}}
        change["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
            "required"
        ] = ["size"]
        patched = await api("PATCH", f"{paths[0]}/widgets.example.com", change, MERGE)
        assert (patched.status, patched.body["metadata"]["generation"]) == (200, 2)
        refused = await api("POST", paths[1], widget())
        assert refused.causes == {("spec.size", "FieldValueRequired")}

    play(scenario)


def test_new_defaults_reach_objects_that_are_there(play, definition, widget, paths):
    """An object stored before a default existed shows it afterwards."""

    async def scenario(api):
        await api("POST", paths[0], definition)
        await api("POST", paths[1], widget(size=1))
        versions = definition["spec"]["versions"]
        spec = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        spec["replicas"]["default"] = 3
        await api(
            "PATCH", f"{paths[0]}/widgets.example.com", {"spec": {"versions": versions}}, MERGE
        )
        await api("GET", f"{paths[1]}/w")
        await api.server.core.resources.settled()
        assert (await api("GET", f"{paths[1]}/w")).body["spec"]["replicas"] == 3

    play(scenario)


def test_deleting_a_definition_deletes_its_objects(play, definition, widget, paths):
    """The answer is the definition with its finalizer; afterwards neither it nor an object is there."""

    async def scenario(api):
        await api("POST", paths[0], definition)
        await api("POST", paths[1], widget(size=1))
        gone = await api("DELETE", f"{paths[0]}/widgets.example.com")
        assert gone.status == 200
        assert gone.body["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert (await api("GET", f"{paths[0]}/widgets.example.com")).status == 404
        assert (await api("GET", paths[1])).status == 404
        await api("POST", paths[0], definition)
        assert (await api("GET", paths[1])).body["items"] == []

    play(scenario)


def test_a_definition_waits_for_finalizers_of_its_objects(play, definition, widget, paths):
    """While an object is held, the definition stays, takes no new objects, and goes with the last one."""

    async def scenario(api):
        await api("POST", paths[0], definition)
        held = widget(size=1)
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await api("POST", paths[1], held)
        await api("DELETE", f"{paths[0]}/widgets.example.com")
        found = await api("GET", f"{paths[0]}/widgets.example.com")
        assert "Terminating" in {c["type"] for c in found.body["status"]["conditions"]}
        assert (await api("POST", paths[1], widget("other", size=1))).status == 405
        await api("PATCH", f"{paths[1]}/w", {"metadata": {"finalizers": None}}, MERGE)
        await api("GET", f"{paths[1]}/w")
        await api.server.core.resources.settled()
        assert (await api("GET", f"{paths[0]}/widgets.example.com")).status == 404

    play(scenario)


def test_a_name_in_use_is_not_accepted_until_it_is_free(play, definition, paths):
    """Two definitions of a group cannot have the same kind; the second gets it when the first goes."""

    async def scenario(api):
        await api("POST", paths[0], definition)
        other = {**definition, "metadata": {"name": "gadgets.example.com"}}
        other["spec"] = {
            **definition["spec"],
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Widget"},
        }
        made = (await api("POST", paths[0], other)).body
        conditions = {c["type"]: (c["status"], c["reason"]) for c in made["status"]["conditions"]}
        assert conditions["NamesAccepted"] == ("False", "ListKindConflict")
        assert conditions["Established"] == ("False", "NotAccepted")
        assert (await api("GET", "/apis/example.com/v1/gadgets")).status == 404
        await api("DELETE", f"{paths[0]}/widgets.example.com")
        assert (await api("GET", "/apis/example.com/v1/gadgets")).status == 200

    play(scenario)


def test_definitions_in_the_store_are_served_from_the_start(play, definition, widget, paths):
    """A server over a store with definitions and objects serves them."""
    from drayman.apiserver.serving.assembly import make_server

    async def scenario(api):
        await api("POST", paths[0], definition)
        await api("POST", paths[1], widget(size=1))
        api.server = make_server(api.server.core.store)
        assert (await api("GET", f"{paths[1]}/w")).body["spec"]["size"] == 1

    play(scenario)


def test_a_definition_cannot_take_a_builtin_resource(play, definition, paths):
    """Leases stay leases, though somebody defines them anew."""

    async def scenario(api):
        definition["metadata"] = {
            "name": "leases.coordination.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        }
        definition["spec"].update(
            group="coordination.k8s.io", names={"plural": "leases", "kind": "Lease"}
        )
        assert (await api("POST", paths[0], definition)).status == 201
        found = api.server.core.resources.find("coordination.k8s.io", "v1", "leases")
        assert found is not None
        assert not found.custom

    play(scenario)
