"""Field managers: who owns what after which write, beyond what is recorded."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.schema import schema_for
from drayman.apiserver.patching.builtin_shapes import shape_of, zero_of
from drayman.apiserver.patching.conflicts import ConflictError
from drayman.apiserver.patching.custom_shapes import custom_resource_shape
from drayman.apiserver.patching.field_manager import FieldManager
from drayman.apiserver.patching.field_set import decode, field_set, named_path
from drayman.apiserver.patching.managed_fields import (
    ANCIENT_CHANGES,
    MAX_UPDATE_MANAGERS,
    Manager,
    Ownership,
    cap_update_managers,
    decode_managed,
    encode_managed,
)
from drayman.apiserver.patching.scaling import ScaleOwnership
from drayman.apiserver.patching.versions import Versions
from drayman.apiserver.protocol.errors import StatusError

T1, T2 = "2024-05-01T10:00:00Z", "2024-05-01T10:00:01Z"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "tags": {
                    "type": "array",
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "set",
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port"],
                    "items": {
                        "type": "object",
                        "properties": {"port": {"type": "integer"}, "name": {"type": "string"}},
                    },
                },
            },
        }
    },
}


def widgets(schema: dict[str, Any]) -> FieldManager:
    versions = Versions({"g.example/v1": custom_resource_shape(schema)})
    nothing = {"apiVersion": "g.example/v1", "kind": "Widget"}
    return FieldManager("g.example/v1", "Widget", versions, nothing)


WIDGETS = widgets(SCHEMA)


def configmaps() -> FieldManager:
    message = schema_for("", "v1", "ConfigMap")
    assert message is not None
    nothing = {**zero_of(message), "apiVersion": "v1", "kind": "ConfigMap"}
    return FieldManager("v1", "ConfigMap", Versions({"v1": shape_of(message)}), nothing)


CONFIGMAPS = configmaps()


def configmap(data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
    obj["metadata"] = {"name": "cm", **metadata}
    return obj if data is None else {**obj, "data": data}


def widget(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "g.example/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": spec,
    }


def stored(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "uid": "u"}}


def owners(obj: dict[str, Any]) -> dict[str, list[str]]:
    found = {}
    for entry in obj["metadata"].get("managedFields", []):
        paths = ["".join(path) for path in decode(entry["fieldsV1"]).paths()]
        found[f"{entry['manager']}/{entry['operation']}"] = sorted(paths)
    return found


def apply(
    live: dict[str, Any] | None, applied: dict[str, Any], manager: str, **options: Any
) -> dict[str, Any]:
    force = options.get("force", False)
    return CONFIGMAPS.apply(live, applied, manager, force=force, now=options.get("now", T1))


specs = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "labels": st.dictionaries(
            st.sampled_from("abc"), st.sampled_from("xy"), min_size=1, max_size=3
        ),
        "tags": st.lists(st.sampled_from("xyz"), unique=True, min_size=1, max_size=3),
        "ports": st.lists(
            st.fixed_dictionaries(
                {"port": st.integers(1, 4)}, optional={"name": st.sampled_from("xy")}
            ),
            unique_by=lambda port: port["port"],
            min_size=1,
            max_size=3,
        ),
    },
)


def apply_widget(
    live: dict[str, Any] | None, spec: dict[str, Any], manager: str, now: str = T1
) -> dict[str, Any]:
    result = WIDGETS.apply(live, widget(spec), manager, force=True, now=now)
    return stored(result)


@given(st.lists(st.tuples(st.sampled_from("pq"), specs), min_size=1, max_size=5))
def test_applying_twice_is_applying_once(writes: list[tuple[str, Any]]) -> None:
    """An apply that is repeated changes nothing, not even a time, whatever was applied before.

    Each sets a size, for who sets nothing that can be owned leaves no account of having been there. Nor is any
    list or map empty: one that loses all its items becomes null, and is made empty by the next apply only.
    """
    live = None
    for manager, spec in writes:
        live = apply_widget(live, {"size": 1, **spec}, manager)
    assert live is not None
    again = apply_widget(live, {"size": 1, **writes[-1][1]}, writes[-1][0], T2)
    assert again == live


@given(st.lists(st.tuples(st.sampled_from("pq"), specs), min_size=1, max_size=5))
def test_sole_owners_take_all_with_them(writes: list[tuple[str, Any]]) -> None:
    """Once all that applied apply nothing any more, nothing is left of what they had."""
    live = None
    for manager, spec in writes:
        live = apply_widget(live, spec, manager)
    for manager in "pq":
        live = apply_widget(live, {}, manager)
    assert live is not None
    spec = live.get("spec") or {}
    assert not any(spec.values())


@given(specs, specs)
def test_what_one_applies_the_other_does_not_lose(first: Any, second: Any) -> None:
    """An applier that goes away leaves what another one applied, too."""
    live = apply_widget(None, first, "p")
    live = apply_widget(live, second, "q")
    alone = apply_widget(None, second, "q")
    left = apply_widget(live, {}, "p")
    wanted = {name: value for name, value in alone["spec"].items() if value}
    found = {name: value for name, value in (left.get("spec") or {}).items() if value}
    assert normal(found) == normal(wanted)


def normal(spec: dict[str, Any]) -> Any:
    """A spec without the order of items that have names."""
    return {
        name: sorted(value, key=_sorted_text) if isinstance(value, list) else value
        for name, value in spec.items()
    }


def _sorted_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(specs, specs)
def test_updates_leave_no_field_to_two(before: Any, after: Any) -> None:
    """The writer owns what its update changed, and nobody else does."""
    live = stored(WIDGETS.create(widget(before), "p", T1))
    new = stored(widget(after))
    result = WIDGETS.update(live, new, "q", T2)
    managed = decode_managed(result["metadata"].get("managedFields"))
    p = managed.get(Manager("p", "Update", "g.example/v1"))
    q = managed.get(Manager("q", "Update", "g.example/v1"))
    if p is not None and q is not None:
        assert not (p.fields & q.fields)
    assert (q is None) or q.time == T2


def test_arguments_stay_as_they_are() -> None:
    """Neither the live object nor the configuration is changed."""
    live = stored(apply(None, configmap({"a": "1"}), "p"))
    applied = configmap({"b": "2"})
    before = copy.deepcopy((live, applied))
    apply(live, applied, "p")
    CONFIGMAPS.update(live, stored(configmap({"c": "3"})), "q", T2)
    assert (live, applied) == before


def test_update_merges_into_the_entry_of_its_manager() -> None:
    """A manager has one entry for each way it writes; its time is that of the last change."""
    live = stored(CONFIGMAPS.create(configmap({"a": "1"}), "p", T1))
    result = CONFIGMAPS.update(live, stored(configmap({"a": "1", "b": "2"})), "p", T2)
    assert owners(result) == {"p/Update": ["f:data", "f:dataf:a", "f:dataf:b"]}
    assert result["metadata"]["managedFields"][0]["time"] == T2


def test_update_without_change_keeps_entries() -> None:
    """Writing the same again is no write: the entries and their times stay."""
    live = stored(CONFIGMAPS.create(configmap({"a": "1"}), "p", T1))
    result = CONFIGMAPS.update(live, stored(configmap({"a": "1"})), "q", T2)
    assert result == live


def test_update_with_entries_of_its_own() -> None:
    """A client may rewrite the entries through the main path, not through a subresource."""
    live = stored(apply(None, configmap({"a": "1"}), "p"))
    entries = copy.deepcopy(live["metadata"]["managedFields"])
    entries[0]["manager"] = "q"
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"] = entries
    assert list(owners(CONFIGMAPS.update(live, new, "r", T2))) == ["q/Apply"]
    assert list(owners(CONFIGMAPS.update(live, new, "r", T2, "status"))) == ["p/Apply"]


@pytest.mark.parametrize("entries", [[], [{}]])
def test_reset(entries: list[Any]) -> None:
    """An empty list of entries, or an empty entry, makes the server forget all owners."""
    live = stored(apply(None, configmap({"a": "1"}), "p"))
    new = configmap({"a": "1"}, uid="u", managedFields=entries)
    assert owners(CONFIGMAPS.update(live, new, "q", T2)) == {}


def test_entries_that_cannot_be_understood() -> None:
    """An update with garbled entries keeps those there were."""
    live = stored(apply(None, configmap({"a": "1"}), "p"))
    new = configmap({"a": "1"}, uid="u", managedFields=[{"manager": "x", "operation": "Frob"}])
    assert list(owners(CONFIGMAPS.update(live, new, "q", T2))) == ["p/Apply"]


def test_untracked_objects_stay_untracked() -> None:
    """An object without entries gets none by updates; the first apply finds an owner for what is there."""
    live = stored(configmap({"a": "1"}))
    updated = CONFIGMAPS.update(live, stored(configmap({"a": "2"})), "q", T2)
    assert owners(updated) == {}
    applied = apply(updated, configmap({"b": "1"}), "p")
    assert owners(applied) == {
        "p/Apply": ["f:dataf:b"],
        "before-first-apply/Update": ["f:data", "f:dataf:a"],
    }


def test_owners_in_versions_that_are_gone_are_forgotten() -> None:
    """Entries in an API version that is not served any more are dropped with the next change."""
    live = stored(apply(None, configmap({"a": "1"}), "p"))
    old = dict(live["metadata"]["managedFields"][0], manager="old", apiVersion="v0")
    live["metadata"]["managedFields"].append(old)
    result = apply(live, configmap({"b": "1"}), "q")
    assert set(owners(result)) == {"p/Apply", "q/Apply"}


def test_owners_of_items_own_the_list_once_it_is_one_unit() -> None:
    """When a definition makes one unit of a list, who owned items of it owns the list, and others conflict over it."""
    schema = copy.deepcopy(SCHEMA)
    del schema["properties"]["spec"]["properties"]["ports"]["x-kubernetes-list-type"]
    live = apply_widget(None, {"ports": [{"port": 1}]}, "p")
    after = widgets(schema)
    with pytest.raises(ConflictError) as caught:
        after.apply(live, widget({"ports": [{"port": 2}]}), "q", force=False, now=T2)
    assert [cause.field for cause in caught.value.causes] == [".spec.ports"]
    taken = after.apply(live, widget({"ports": [{"port": 2}]}), "q", force=True, now=T2)
    assert owners(taken) == {"q/Apply": ["f:specf:ports"]}


def test_conflict_of_several_fields() -> None:
    """A conflict names every field and who owns it, by manager."""
    live = stored(apply(None, configmap({"a": "1", "b": "1"}), "p"))
    live = stored(CONFIGMAPS.update(live, stored(configmap({"a": "1", "b": "2"})), "u", T2))
    with pytest.raises(ConflictError) as caught:
        apply(live, configmap({"a": "3", "b": "3"}), "q")
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert caught.value.message == (
        'Apply failed with 2 conflicts: conflicts with "p":\n- .data.a\n'
        'conflicts with "u" using v1:\n- .data.b'
    )
    assert [(cause.field, cause.reason) for cause in caught.value.causes] == [
        (".data.a", "FieldManagerConflict"),
        (".data.b", "FieldManagerConflict"),
    ]


def test_entries_that_cannot_be_understood_stop_an_apply() -> None:
    """An apply to an object whose owners are garbled is refused: it could not tell conflicts."""
    live = configmap({"a": "1"}, uid="u", managedFields=[{"operation": "Frob"}])
    with pytest.raises(StatusError, match="failed to decode managed fields") as caught:
        apply(live, configmap({"a": "2"}), "p")
    assert caught.value.code == 400


def with_annotation(data: dict[str, str], said: dict[str, Any]) -> dict[str, Any]:
    annotation = "kubectl.kubernetes.io/last-applied-configuration"
    return configmap(data, annotations={annotation: json.dumps(said)})


def test_kubectl_takes_what_it_applied_from_the_client() -> None:
    """kubectl does not conflict with its client-side self over fields that are as it left them."""
    said = configmap({"a": "1"})
    live = CONFIGMAPS.create(with_annotation({"a": "1"}, said), "kubectl-client-side-apply", T1)
    result = apply(stored(live), configmap({"a": "2"}), "kubectl", now=T2)
    assert result["data"] == {"a": "2"}
    annotation = result["metadata"]["annotations"][
        "kubectl.kubernetes.io/last-applied-configuration"
    ]
    assert json.loads(annotation)["data"] == {"a": "2"}
    with pytest.raises(ConflictError):
        apply(stored(live), configmap({"a": "2"}), "somebody")


def test_kubectl_conflicts_over_what_changed_since() -> None:
    """A field that somebody changed after client-side apply is not kubectl's to take."""
    said = configmap({"a": "1", "b": "1"})
    live = CONFIGMAPS.create(with_annotation({"a": "1", "b": "9"}, said), "x", T1)
    with pytest.raises(ConflictError) as caught:
        apply(stored(live), configmap({"a": "2", "b": "2"}), "kubectl")
    assert [cause.field for cause in caught.value.causes] == [".data.b"]


def test_updaters_are_capped() -> None:
    """Beyond the limit the oldest updates are merged into one manager of ancient changes."""
    live = stored(CONFIGMAPS.create(configmap({"k0": "0"}), "m00", T1))
    for index in range(1, MAX_UPDATE_MANAGERS + 3):
        data = {**live["data"], f"k{index}": "0"}
        time = f"2024-05-01T10:00:{index:02}Z"
        live = stored(CONFIGMAPS.update(live, stored({**live, "data": data}), f"m{index:02}", time))
    found = owners(live)
    assert len(found) == MAX_UPDATE_MANAGERS
    merged = found[f"{ANCIENT_CHANGES}/Update"]
    assert merged == ["f:data", "f:dataf:k0", "f:dataf:k1", "f:dataf:k2", "f:dataf:k3"]


def test_cap_leaves_appliers_alone() -> None:
    """Entries of apply do not count, however many there are."""
    fields = field_set([named_path("a")])
    managed = {Manager(f"m{i}", "Apply"): Ownership(fields, "v1", T1) for i in range(20)}
    assert cap_update_managers(managed) == managed


@given(
    st.dictionaries(
        st.builds(
            Manager,
            st.sampled_from("abc"),
            st.just("Update"),
            st.sampled_from(["v1", "v2"]),
            st.sampled_from(["", "status"]),
        ),
        st.sampled_from(["", T1, T2]),
        max_size=5,
    )
)
def test_entries_encode_then_decode(times: dict[Manager, str]) -> None:
    """What is written as entries is read as the same owners."""
    fields = field_set([named_path("a", "b")])
    managed = {m: Ownership(fields, m.api_version, time) for m, time in times.items()}
    assert decode_managed(encode_managed(managed)) == managed


def test_scale_owners() -> None:
    """Who scales takes the replicas from their owner, in terms of the parent."""
    ways = ScaleOwnership("apps/v1", {"apps/v1": named_path("spec", "replicas")})
    replicas = field_set([named_path("spec", "replicas")])
    owned = field_set([named_path("spec", "replicas"), named_path("spec", "paused")])
    parent = encode_managed({Manager("p", "Apply"): Ownership(owned, "apps/v1", T1)})
    shown = decode_managed(ways.to_scale(parent))
    assert shown == {Manager("p", "Apply"): Ownership(replicas, "autoscaling/v1", T1)}
    scaler = Manager("hpa", "Update", "autoscaling/v1", "scale")
    written = encode_managed({scaler: Ownership(replicas, "autoscaling/v1", T2)})
    assert decode_managed(ways.to_parent(parent, written)) == {
        Manager("p", "Apply"): Ownership(owned - replicas, "apps/v1", T1),
        Manager("hpa", "Update", "apps/v1", "scale"): Ownership(replicas, "apps/v1"),
    }
    kept = decode_managed(ways.to_parent(parent, ways.to_scale(parent)))
    assert kept == decode_managed(parent)
