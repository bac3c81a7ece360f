"""The table of the kinds that a world holds and a scheduler follows."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from drayman.api.catalog import kind_of_type
from drayman.api.core import Namespace, Node, Pod, PodSpec
from drayman.api.meta import ObjectMeta
from drayman.inventory.features import Features
from drayman.placement.followed import FOLLOWED, HELD, Followed, Held
from drayman.placement.state import ClusterState
from drayman.placement.world import Objects

UNTYPED = {"rules"}
"""Members of `Objects` that only the API server reads, and which have no types."""


def test_there_is_a_member_for_each_kind() -> None:
    """Each row names the member of `Objects` that holds its type, and each typed member has one row."""
    hints = get_type_hints(Objects)
    held = {kind.member: kind.type for kind in HELD}
    assert len(held) == len(HELD)
    assert held == {
        member.name: get_args(hints[member.name])[0]
        for member in fields(Objects)
        if member.name not in UNTYPED
    }


@pytest.mark.parametrize("kind", HELD, ids=lambda kind: kind.member)
def test_every_kind_is_in_the_catalog(kind: Held) -> None:
    """What is held can be asked for."""
    assert kind_of_type(kind.type).type is kind.type


@pytest.mark.parametrize("kind", FOLLOWED, ids=lambda kind: kind.member)
def test_an_object_can_come_and_go(kind: Followed) -> None:
    """The state takes in an object of each kind, and lets go of it, and of one that it never saw."""
    state = ClusterState(Features(), lambda _: None)
    value: Any = kind.type(metadata=ObjectMeta(name="a", namespace="b", uid="c"))  # type: ignore[call-arg]
    kind.remove(state, value)
    assert kind.put(state, value) is not False
    kind.remove(state, value)


def test_put_and_remove_are_inverse_for_nodes_and_pods() -> None:
    """A node and a pod on it are there after they were put, and gone after they were removed."""
    rows = {kind.type: kind for kind in FOLLOWED}
    state = ClusterState(Features(), lambda _: None)
    node = Node(metadata=ObjectMeta(name="n"))
    pod = Pod(metadata=ObjectMeta(name="p", namespace="b", uid="u"), spec=PodSpec(node_name="n"))
    for value in (Namespace(metadata=ObjectMeta(name="b")), node, pod):
        rows[type(value)].put(state, value)
    assert set(state.nodes) == {"n"}
    assert state.node_of("u") == "n"
    rows[Pod].remove(state, pod)
    assert state.node_of("u") is None
    rows[Node].remove(state, node)
    assert not state.nodes


def test_the_table_needs_no_search() -> None:
    """Code that only lists the kinds does not import the allocator."""
    code = "import sys, drayman.placement.followed; print('drayman.allocator' in sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "False"
