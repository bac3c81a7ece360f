"""What a node offers to pods, judging by its object alone.

Nodes of one model differ only in their name. As with pods, what they have in common is one shared object, the `NodeShape`, compared by
identity: a verdict about a pod's shape and a node's shape holds for all of them, unless the pod looks at names.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from weakref import WeakValueDictionary

from msgspec import Struct

from drayman.api.core import Node, Taint
from drayman.placement.fit.node_choice import HOSTNAME
from drayman.placement.fit.requests import CPU, MEMORY, PODS, STORAGE, is_counted, whole_amounts
from drayman.placement.fit.taints import DISCOURAGING, REPELLING


class NodeShape(Struct, frozen=True, eq=False, weakref=True):
    """A node without its name. Equal shapes are the same object; make them with `NodeFacts.of`."""

    unschedulable: bool
    taints: tuple[Taint, ...]
    """Those that keep pods away."""
    soft_taints: tuple[Taint, ...]
    """Those that merely discourage them."""
    cpu: int
    memory: int
    storage: int
    pods: int
    extended: Mapping[str, int]


class NodeFacts(Struct, frozen=True):
    """A node as node fit sees it."""

    name: str
    labels: Mapping[str, str]
    shape: NodeShape
    """The same for nodes that pods can distinguish only by name."""

    @staticmethod
    def of(node: Node) -> NodeFacts:
        return NodeFacts(node.metadata.name, node.metadata.labels, _shape_of(node))


_shapes: WeakValueDictionary[Hashable, NodeShape] = WeakValueDictionary()


def _shape_of(node: Node) -> NodeShape:
    labels, spec = node.metadata.labels, node.spec
    amounts = whole_amounts(node.status.allocatable)
    content = (
        frozenset((key, value) for key, value in labels.items() if key != HOSTNAME),
        HOSTNAME in labels,
        spec.unschedulable,
        tuple((taint.key, taint.value, taint.effect) for taint in spec.taints),
        frozenset(amounts.items()),
    )
    shape = _shapes.get(content)
    if shape is None:
        shape = _shapes[content] = NodeShape(
            spec.unschedulable,
            tuple(taint for taint in spec.taints if taint.effect in REPELLING),
            tuple(taint for taint in spec.taints if taint.effect == DISCOURAGING),
            amounts.get(CPU, 0),
            amounts.get(MEMORY, 0),
            amounts.get(STORAGE, 0),
            amounts.get(PODS, 0),
            {name: amount for name, amount in amounts.items() if is_counted(name)},
        )
    return shape
