"""Who owns the fields of a new object: what is remembered of others with the same structure is what would be worked out anew."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.building import CountingIds, FixedClock
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.patching.structure import structure_of
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.apiserver.verbs.ownership import manager_of
from drayman.cluster import InProcessClient
from drayman.cluster.embedded import Store
from drayman.cluster.resources import CONFIG_MAPS, RESOURCE_CLAIMS, JsonObject, Resource
from rounds import rounds

CLAIMS = RESOURCE_CLAIMS.as_values()

texts = st.sampled_from(["", "0", "a", "bc"])
maps = st.one_of(st.none(), st.dictionaries(st.sampled_from(["k", "l"]), texts, max_size=2))
owners = st.lists(
    st.builds(
        lambda number: {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": f"u{number}"},
        st.integers(1, 3),
    ),
    max_size=2,
    unique_by=lambda owner: owner["uid"],
)
metadata = st.fixed_dictionaries(
    {"labels": maps, "annotations": maps, "ownerReferences": owners},
    optional={"generateName": st.just("x-"), "finalizers": st.sampled_from([[], ["a.b/c"]])},
)
config_maps = st.builds(
    lambda meta, data, immutable: {"metadata": meta, "data": data, "immutable": immutable},
    metadata,
    maps,
    st.sampled_from([None, False]),
)
claims = st.builds(
    lambda meta, names: {
        "metadata": meta,
        "spec": {
            "devices": {
                "requests": [{"name": n, "exactly": {"deviceClassName": "c"}} for n in names]
            }
        },
    },
    metadata,
    st.lists(st.sampled_from(["r", "s"]), min_size=1, unique=True),
)


async def check(resource: Resource[JsonObject], objects: list[JsonObject]) -> None:
    store = Store.open(None)
    try:
        core = make_server(store, clock=FixedClock(), ids=CountingIds()).core
        await create_first_objects(core)
        client = InProcessClient(ServerBackend(core))
        served = core.resources.find(resource.group, resource.version, resource.plural)
        assert served is not None
        manager = manager_of(Call(core, served, resource.version, "create"))
        for number, obj in enumerate(objects):
            named = obj | {"metadata": obj["metadata"] | {"name": f"o{number}"}}
            made = await client.create(resource, named, "default")
            entries = made["metadata"].pop("managedFields", None)
            now = made["metadata"]["creationTimestamp"]
            fresh = manager.create(made, "drayman", now)
            assert entries == fresh["metadata"].get("managedFields")
    finally:
        store.close()


@settings(max_examples=rounds(40), deadline=None)
@given(st.lists(config_maps, min_size=1, max_size=6))
def test_config_maps(objects: list[Any]) -> None:
    """Empty, zero and absent values count as they would for the object alone."""
    asyncio.run(check(CONFIG_MAPS, objects))


@settings(max_examples=rounds(40), deadline=None)
@given(st.lists(claims, min_size=1, max_size=6))
def test_claims(objects: list[Any]) -> None:
    """Each object is told to belong to its own owner, not to that of the object it is like."""
    asyncio.run(check(CLAIMS, objects))


def test_structure() -> None:
    """Texts and numbers do not count, names, emptiness and the contents of lists do."""
    assert structure_of({"a": "x", "b": {"c": 1}}) == structure_of({"a": "y", "b": {"c": 2}})
    for other in ({"a": ""}, {"a": None}, {"a": "0"}, {"b": "x"}, {"a": ["x"]}, {"a": {}}):
        assert structure_of({"a": "x"}) != structure_of(other)
    assert structure_of(["x"]) != structure_of(["y"])
    assert structure_of(["x" * 9000]) != structure_of(["y" * 9000])
