"""The domains of a cluster as it is now, in trials as well.

Everything is read from the nodes of the state, and looked at again only for nodes that are marked as changed (`marks`). Nothing is
copied, so nothing has to be undone when a trial ends: the nodes that changed in it are marked, and are looked at once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from drayman.bounded import Bounded
from drayman.inventory.view import NodeView
from drayman.placement.domains.tree import DomainTree
from drayman.placement.marks import Marks, Position
from drayman.placement.nodes import NodeState
from drayman.topology import Hierarchy, Level, level_of, recognised, stated_by
from drayman.topology.levels import HOSTNAME, KNOWN_KEYS

_MOST_TREES: Final = 64


class Located(Protocol):
    """What has to be known about a cluster to find the places of its nodes."""

    @property
    def nodes(self) -> Mapping[str, NodeState]: ...

    @property
    def marks(self) -> Marks: ...

    def view(self, node: NodeState) -> NodeView: ...


class Changes:
    """Which nodes may have changed since the last look."""

    def __init__(self, state: Located) -> None:
        self._state = state
        self._epoch = -1
        self._read: Position | None = None

    def since_last(self) -> tuple[str, ...] | None:
        """The names of nodes that came, went or changed; None if it may be any of them."""
        marks = self._state.marks
        before, self._read = self._read, marks.position
        if before is None or self._epoch != marks.epoch:
            self._epoch = marks.epoch
            return None
        return tuple(dict.fromkeys(marks.since(before)))


class _Followed:
    """A tree and how far it has been kept up."""

    def __init__(self, state: Located, hierarchy: Hierarchy) -> None:
        self.tree = DomainTree(hierarchy)
        self.changes = Changes(state)


class Domains:
    """The domains of one cluster state."""

    def __init__(self, state: Located) -> None:
        self._state = state
        self._trees: Bounded[Hierarchy, _Followed] = Bounded(_MOST_TREES)
        self._rows: dict[str, Mapping[str, str]] = {}  # by node, what is known to name a place
        self._kept: Bounded[tuple[tuple[str, ...], str | None], Hierarchy] = Bounded(_MOST_TREES)
        self._changes = Changes(state)

    def tree(self, hierarchy: Hierarchy) -> DomainTree:
        """The domains of a hierarchy, as the nodes are now. Valid until the next change."""
        followed = self._trees.get(hierarchy)
        if followed is None:
            followed = self._trees[hierarchy] = _Followed(self._state, hierarchy)
        tree, nodes = followed.tree, self._state.nodes
        changed = followed.changes.since_last()
        if changed is None:
            for name in (*tree.known_nodes, *nodes):
                self._locate(tree, name)
            return tree
        for name in changed:
            self._locate(tree, name)
        return tree

    def hierarchy(self, wanted: Sequence[str] = (), *, required: str | None = None) -> Hierarchy:
        """The levels that nodes and devices have by themselves, with those that are asked for."""
        self._read_known()
        asked = tuple(dict.fromkeys((*wanted, *([] if required is None else [required]))))
        found = self._kept.get((asked, required))
        if found is not None:
            return found
        unknown = [level_of(key) for key in asked if key not in KNOWN_KEYS]
        rows: list[Mapping[str, str]] = list(self._rows.values())
        if unknown:
            nodes = self._state.nodes
            rows = [
                {**row, **{level.key: self.value(nodes[name], level) for level in unknown}}
                for name, row in self._rows.items()
            ]
        present = {key for row in self._rows.values() for key in row} - {HOSTNAME}
        found = recognised(present, rows, wanted=asked, widest=required)
        if not unknown:  # what is not in the table may change without being noticed here
            self._kept[asked, required] = found
        return found

    def value(self, node: NodeState, level: Level) -> str:
        """What a node, or else its devices, say for a level; empty if nothing."""
        labels = node.facts.labels
        if level.only_with and level.only_with not in labels:
            return ""
        return labels.get(level.key, "") or self._stated(node, level.key)

    def _stated(self, node: NodeState, key: str) -> str:
        for part in self._state.view(node).parts:
            found = part.hardware.derived(stated_by).value(key)
            if found:
                return found
        return ""

    def _locate(self, tree: DomainTree, name: str) -> None:
        node = self._state.nodes.get(name)
        if node is None:
            tree.remove(name)
            return
        tree.set(name, tree.hierarchy.path(lambda level: self.value(node, level)))

    def _read_known(self) -> None:
        """Read what nodes and devices say that is in the table. What was concluded holds while that stays the same."""
        changed = self._changes.since_last()
        nodes = self._state.nodes
        for name in (*self._rows, *nodes) if changed is None else changed:
            before = self._rows.get(name)
            node = nodes.get(name)
            if node is None:
                self._rows.pop(name, None)
                row = None
            else:
                row = self._rows[name] = self._known_values(node)
            if row != before:
                self._kept.clear()

    def _known_values(self, node: NodeState) -> Mapping[str, str]:
        labels = node.facts.labels
        found = {
            key: labels[key]
            for key in KNOWN_KEYS.keys() & labels.keys()
            if labels[key]
            and (not KNOWN_KEYS[key].only_with or KNOWN_KEYS[key].only_with in labels)
        }
        for part in self._state.view(node).parts:
            found = {**part.hardware.derived(stated_by).known, **found}
        return found
