"""Garbage collection: what goes with its owners, what waits, what is set free, and what stays."""

from __future__ import annotations

import pytest

from apiserver.lifecycle.world import (
    CLASS,
    CONFIG,
    DEFINITION,
    NAMESPACE,
    WIDGET,
    Object,
    World,
    blocking,
    owner,
    widgets_definition,
    world,
)
from drayman.apiserver.lifecycle.collecting import Collector, StoredResources
from drayman.apiserver.lifecycle.graph import Graph, node_of
from drayman.cluster.options import DeleteOptions, ListOptions, WriteOptions

HELD = ("example.com/held",)


def release(metadata: Object) -> None:
    metadata["finalizers"] = []


async def test_dependents_go_with_their_owner() -> None:
    """In the background, an owner goes at once and everything below it follows; what belongs to others stays."""
    async with world() as w:
        top = await w.config("top")
        middle = await w.config("middle", owner(top))
        await w.config("bottom", owner(middle))
        other = await w.config("other")
        await w.config("stays", owner(other))
        await w.delete(CONFIG, "top", "Background")
        await w.until_gone(CONFIG, "middle", "bottom")
        await w.quiet()
        assert await w.names() == {"other", "stays"}


async def test_one_of_two_owners_is_enough() -> None:
    """An object with an owner left stays, and no longer names the one that is gone."""
    async with world() as w:
        first, second = await w.config("first"), await w.config("second")
        await w.config("shared", owner(first), owner(second))
        await w.delete(CONFIG, "first")
        await w.quiet()
        shared = await w.get(CONFIG, "shared")
        assert shared is not None
        assert [r["name"] for r in shared["metadata"]["ownerReferences"]] == ["second"]
        await w.delete(CONFIG, "second")
        await w.until_gone(CONFIG, "shared")


async def test_an_owner_that_came_after_the_last_look_is_enough() -> None:
    """The graph is behind when a decision before this one took long: what it does not know of is not nothing."""
    async with world(running=False) as w:
        first, second = await w.config("first"), await w.config("second")
        shared = await w.config("shared", owner(first))
        graph = Graph()
        graph.put(node_of(w.store.list("configmaps", "default")[-1]))
        assert graph.has_dependents(first["metadata"]["uid"])
        await w.change(
            CONFIG, "shared", lambda it: it.update(ownerReferences=[owner(first), owner(second)])
        )
        await w.delete(CONFIG, "first")
        collector = Collector(graph, StoredResources(w.core.resources))
        await collector.attend(w.core, shared["metadata"]["uid"])
        left = await w.get(CONFIG, "shared")
        assert left is not None
        assert [r["name"] for r in left["metadata"]["ownerReferences"]] == ["second"]


async def test_an_owner_in_the_foreground_waits_for_those_that_block_it() -> None:
    """It stays, marked, until the last dependent with blockOwnerDeletion is gone."""
    async with world() as w:
        top = await w.config("top")
        await w.config("blocks", blocking(top), finalizers=HELD)
        await w.delete(CONFIG, "top", "Foreground")
        await w.quiet()
        waiting, held = await w.get(CONFIG, "top"), await w.get(CONFIG, "blocks")
        assert waiting is not None
        assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
        assert held is not None
        assert "deletionTimestamp" in held["metadata"]
        await w.change(CONFIG, "blocks", release)
        await w.until_gone(CONFIG, "blocks", "top")


async def test_an_owner_in_the_foreground_does_not_wait_for_others() -> None:
    """A dependent without blockOwnerDeletion is deleted too, but its owner may go first."""
    async with world() as w:
        top = await w.config("top")
        await w.config("held", owner(top), finalizers=HELD)
        await w.delete(CONFIG, "top", "Foreground")
        await w.until_gone(CONFIG, "top")
        held = await w.get(CONFIG, "held")
        assert held is not None
        assert "deletionTimestamp" in held["metadata"]


async def test_the_foreground_goes_all_the_way_down() -> None:
    """A dependent that has dependents waits for them as its owner waits for it."""
    async with world() as w:
        top = await w.config("top")
        middle = await w.config("middle", blocking(top))
        await w.config("bottom", blocking(middle), finalizers=HELD)
        await w.delete(CONFIG, "top", "Foreground")
        await w.quiet()
        assert await w.names() == {"top", "middle", "bottom"}
        await w.change(CONFIG, "bottom", release)
        await w.until_gone(CONFIG, "bottom", "middle", "top")


async def test_a_dependent_that_stops_blocking_lets_its_owner_go() -> None:
    """The wait ends when the reference says so, not only when the dependent is gone."""
    async with world() as w:
        top = await w.config("top")
        await w.config("blocks", blocking(top), finalizers=HELD)
        await w.delete(CONFIG, "top", "Foreground")
        await w.quiet()

        def unblock(metadata: Object) -> None:
            metadata["ownerReferences"] = [owner(top, blockOwnerDeletion=False)]

        await w.change(CONFIG, "blocks", unblock)
        await w.until_gone(CONFIG, "top")
        assert await w.names() == {"blocks"}


@pytest.mark.parametrize("count", [1, 150], ids=["one", "more-than-one-transaction"])
async def test_orphans_are_set_free(count: int) -> None:
    """With orphan, the owner goes last, and its dependents stay without it."""
    async with world() as w:
        top = await w.config("top")
        other = await w.config("other")
        for number in range(count):
            await w.config(f"orphan-{number}", owner(other), blocking(top))
        await w.delete(CONFIG, "top", "Orphan")
        await w.until_gone(CONFIG, "top")
        await w.quiet()
        for number in range(count):
            orphan = await w.get(CONFIG, f"orphan-{number}")
            assert orphan is not None
            assert [r["name"] for r in orphan["metadata"]["ownerReferences"]] == ["other"]


async def test_an_object_with_the_orphan_finalizer_spares_its_dependents() -> None:
    """What is deleted for want of owners treats its own dependents as its finalizers say."""
    async with world() as w:
        top = await w.config("top")
        middle = await w.config("middle", owner(top), finalizers=("orphan",))
        await w.config("bottom", owner(middle))
        await w.delete(CONFIG, "top")
        await w.until_gone(CONFIG, "middle")
        await w.quiet()
        assert await w.names() == {"bottom"}


async def test_an_owner_in_another_namespace_is_none() -> None:
    """A reference is looked up in the namespace of the object that has it."""
    async with world() as w:
        await w.create(NAMESPACE, "elsewhere")
        far = await w.create(CONFIG._replace(namespace="elsewhere"), "far")
        await w.config("dependent", owner(far))
        await w.until_gone(CONFIG, "dependent")
        assert await w.get(CONFIG._replace(namespace="elsewhere"), "far") is not None


async def test_an_owner_in_no_namespace() -> None:
    """A cluster-scoped object can own objects in namespaces, and others in none."""
    async with world() as w:
        top = await w.create(CLASS, "top")
        await w.config("inside", owner(top))
        await w.create(CLASS, "beside", owner(top))
        await w.quiet()
        assert await w.names() == {"inside"}
        await w.delete(CLASS, "top")
        await w.until_gone(CONFIG, "inside")
        await w.until_gone(CLASS, "beside")


async def test_a_namespaced_owner_of_an_object_in_no_namespace_counts_for_nothing() -> None:
    """Such a reference is wrong: nothing is deleted for it, whether the owner is there or not."""
    async with world() as w:
        top = await w.config("top")
        await w.create(CLASS, "wrong", owner(top))
        await w.create(CLASS, "never", owner(top, uid="00000000-0000-4000-8000-000000000000"))
        await w.delete(CONFIG, "top")
        await w.quiet()
        assert await w.names(CLASS) >= {"wrong", "never"}


async def test_objects_that_own_each_other_go_together() -> None:
    """A circle is deleted as a whole in the background."""
    async with world() as w:
        await circle(w)
        await w.delete(CONFIG, "one", "Background")
        await w.until_gone(CONFIG, "one", "two", "three")


async def test_a_circle_in_the_foreground_does_not_wait_for_itself() -> None:
    """Objects that block each other would wait for ever, so one of them gives way."""
    async with world() as w:
        await circle(w)
        await w.delete(CONFIG, "one", "Foreground")
        await w.until_gone(CONFIG, "one", "two", "three")


async def circle(w: World) -> None:
    """Three objects, each blocking the next."""
    one = await w.config("one")
    two = await w.config("two", blocking(one))
    three = await w.config("three", blocking(two))

    def close(metadata: Object) -> None:
        metadata["ownerReferences"] = [blocking(three)]

    await w.change(CONFIG, "one", close)


async def test_an_object_that_owns_itself_stays() -> None:
    """Until somebody deletes it, and then it does not wait for itself."""
    async with world() as w:
        alone = await w.config("alone")

        def own(metadata: Object) -> None:
            metadata["ownerReferences"] = [blocking(alone)]

        await w.change(CONFIG, "alone", own)
        await w.quiet()
        assert await w.names() == {"alone"}
        await w.delete(CONFIG, "alone", "Foreground")
        await w.until_gone(CONFIG, "alone")


async def test_another_object_of_the_same_name_is_another_owner() -> None:
    """An owner is who has its uid, not who has its name."""
    async with world() as w:
        first = await w.config("top")
        await w.delete(CONFIG, "top", "Orphan")
        await w.until_gone(CONFIG, "top")
        again = await w.config("top")
        await w.config("of-the-first", owner(first))
        await w.config("of-the-second", owner(again))
        await w.until_gone(CONFIG, "of-the-first")
        await w.quiet()
        assert await w.names() == {"top", "of-the-second"}


async def test_owners_of_a_kind_that_is_defined_later() -> None:
    """While nobody can tell, nothing is deleted. Once the kind is served, absent owners count as absent."""
    async with world() as w:
        unknown = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "none"}
        await w.config("waits", unknown)
        await w.quiet()
        assert await w.names() == {"waits"}
        await w.backend.create(DEFINITION, widgets_definition(), WriteOptions())
        await w.until_gone(CONFIG, "waits")


async def test_custom_resources_own_and_are_owned() -> None:
    """Objects of a kind that was defined after the start are followed from the first one on."""
    async with world() as w:
        await w.backend.create(DEFINITION, widgets_definition(), WriteOptions())
        top = await w.create(WIDGET, "top")
        below = await w.config("below", owner(top))
        await w.create(WIDGET, "bottom", owner(below))
        await w.create(WIDGET, "orphan", owner(top))
        await w.delete(WIDGET, "top", "Orphan")
        await w.until_gone(WIDGET, "top")
        await w.quiet()
        assert await w.names(WIDGET) == {"bottom", "orphan"}
        await w.delete(CONFIG, "below")
        await w.until_gone(WIDGET, "bottom")


async def test_what_custom_resources_own_goes_with_their_definition() -> None:
    """The objects of a definition go with it, and their dependents too although the kind is served no more."""
    async with world() as w:
        await w.backend.create(DEFINITION, widgets_definition(), WriteOptions())
        top = await w.create(WIDGET, "top")
        await w.config("below", owner(top))
        await w.quiet()
        await w.delete(DEFINITION, "widgets.example.com")
        await w.until_gone(DEFINITION, "widgets.example.com")
        await w.until_gone(CONFIG, "below")


async def test_definitions_deleted_as_a_collection_take_their_objects_along() -> None:
    """However a definition is deleted, it waits for objects that have finalizers."""
    async with world() as w:
        await w.backend.create(DEFINITION, widgets_definition(), WriteOptions())
        await w.create(WIDGET, "held", finalizers=HELD)
        await w.create(WIDGET, "free")
        only = ListOptions(field_selector="metadata.name=widgets.example.com")
        await w.backend.delete_collection(DEFINITION, DeleteOptions(), only)
        await w.until_gone(WIDGET, "free")
        assert await w.names(WIDGET) == {"held"}
        await w.change(WIDGET, "held", release)
        await w.quiet()
        await w.until_gone(DEFINITION, "widgets.example.com")
