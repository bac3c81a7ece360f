"""The domains of a hierarchy of levels, with their nodes.

A domain is named by its path: the values of all levels down to its own. The empty path is the whole cluster, and the last level is that of
the nodes themselves, so that a node is a domain, too: its path ends with its name.

A node without a value for a level is in no domain of that level. Its path has an empty value there: a place that is counted where nodes are
spread, and that is never a domain in which something could be required to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drayman.topology import Hierarchy, Path

WHOLE: Path = ()
"""The whole cluster."""


class DomainTree:
    """Nodes by domain. A change to a node costs as much as there are levels."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.hierarchy = hierarchy
        self.node_level = len(hierarchy.levels)
        """The level of the nodes themselves."""
        self._leaf: dict[str, Path] = {}  # by name of the node
        self._children: dict[Path, dict[Path, None]] = {WHOLE: {}}
        self._sorted: dict[Path, tuple[Path, ...]] = {}
        self._lacking = [0] * self.node_level

    def set(self, name: str, place: Path) -> bool:
        """A node is at a place now. Returns whether that is news."""
        leaf = (*place, name)
        if self._leaf.get(name) == leaf:
            return False
        self.remove(name)
        self._leaf[name] = leaf
        for length in range(len(leaf), 0, -1):
            path, parent = leaf[:length], leaf[: length - 1]
            siblings = self._children.setdefault(parent, {})
            if path in siblings:
                break
            siblings[path] = None
            self._sorted.pop(parent, None)
        self._count_lacking(leaf, 1)
        return True

    def remove(self, name: str) -> None:
        """A node is gone."""
        leaf = self._leaf.pop(name, None)
        if leaf is None:
            return
        for length in range(len(leaf), 0, -1):
            path, parent = leaf[:length], leaf[: length - 1]
            if self._children.get(path):
                break
            self._children.pop(path, None)
            self._sorted.pop(path, None)
            del self._children[parent][path]
            self._sorted.pop(parent, None)
        self._count_lacking(leaf, -1)

    def _count_lacking(self, leaf: Path, change: int) -> None:
        for level, value in enumerate(leaf[:-1]):
            if not value:
                self._lacking[level] += change

    def __len__(self) -> int:
        return len(self._leaf)

    @property
    def known_nodes(self) -> tuple[str, ...]:
        """The nodes of the tree."""
        return tuple(self._leaf)

    def leaf(self, node: str) -> Path | None:
        """The path of a node; None if it is unknown."""
        return self._leaf.get(node)

    def of_node(self, node: str, level: int) -> Path | None:
        """The domain of a level in which a node is."""
        leaf = self._leaf.get(node)
        return None if leaf is None or not leaf[level] else leaf[: level + 1]

    def children(self, domain: Path) -> tuple[Path, ...]:
        """What the next finer level divides a domain into, in a stable order. Nodes without a value there come first, as one."""
        found = self._sorted.get(domain)
        if found is None:
            found = self._sorted[domain] = tuple(sorted(self._children.get(domain, ())))
        return found

    def within(self, domain: Path, level: int) -> tuple[Path, ...]:
        """The domains of a level in another one, in a stable order, including the place of nodes without a value."""
        found: tuple[Path, ...] = (domain,)
        for _ in range(level + 1 - len(domain)):
            found = tuple([child for each in found for child in self.children(each)])
        return found

    def domains(self, level: int, within: Path = WHOLE) -> tuple[Path, ...]:
        """The domains of a level, in a stable order."""
        return tuple([path for path in self.within(within, level) if path[-1]])

    def nodes(self, domain: Path) -> tuple[str, ...]:
        """The names of the nodes in a domain, in a stable order."""
        return tuple([path[-1] for path in self.within(domain, self.node_level)])

    def lacking(self, level: int) -> int:
        """How many nodes are in no domain of a level."""
        return 0 if level == self.node_level else self._lacking[level]

    def title(self, domain: Path) -> str:
        """What a domain is called: rack r1; or rack z1/r1 where racks are named within zones."""
        if not domain:
            return "the cluster"
        if len(domain) > self.node_level:
            return f"node {domain[-1]}"
        level = self.hierarchy.levels[len(domain) - 1]
        return f"{level.title} {'/'.join(value or '-' for value in domain)}"


def enclosing(paths: Iterable[Path]) -> Path:
    """The smallest domain that all of these are in."""
    found: Path | None = None
    for path in paths:
        if found is None:
            found = path
            continue
        length = 0
        for one, other in zip(found, path, strict=False):
            if one != other:
                break
            length += 1
        found = found[:length]
    return WHOLE if found is None else found


def contains(domain: Path, path: Path) -> bool:
    """Whether a domain is the other one, or one above it."""
    return path[: len(domain)] == domain


def used_by(leaves: Sequence[Path], level: int) -> frozenset[Path]:
    """The domains of a level in which any of these nodes are."""
    return frozenset(leaf[: level + 1] for leaf in leaves)
