"""What queues are made of and stand in: flavors, cohorts, namespaces, topologies, and the nodes and pods in these.

The part of the engine of quota (`state.py`) that is about no workload.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from drayman.api.core import Namespace, Node, Pod
from drayman.api.custom_groups import KueueTopology, spec_of
from drayman.api.kueue import Cohort, CohortSpec, ResourceFlavor, ResourceFlavorSpec
from drayman.api.pods import is_finished
from drayman.placement.fit.readiness import is_ready
from drayman.quota.books import Books
from drayman.quota.cluster_queues import ClusterQueueState
from drayman.quota.entries import Entry


class QueueSurroundings(ABC):
    """Follows them. A spec that makes no sense raises DecodeError and changes nothing."""

    def __init__(self) -> None:
        self.books = Books()
        self._nodes: dict[str, object] = {}
        """What was last seen of each node, as far as places depend on it."""
        self._namespaces: dict[str, Mapping[str, str]] = {}

    def set_flavor(self, flavor: ResourceFlavor) -> None:
        self.books.set_flavor(flavor.metadata.name, spec_of(ResourceFlavorSpec, flavor))

    def remove_flavor(self, name: str) -> None:
        self.books.set_flavor(name, None)

    def set_cohort(self, cohort: Cohort) -> None:
        self.books.set_cohort(cohort.metadata.name, spec_of(CohortSpec, cohort))

    def remove_cohort(self, name: str) -> None:
        self.books.set_cohort(name, None)

    def set_namespace(self, namespace: Namespace) -> None:
        self._label(namespace.metadata.name, namespace.metadata.labels)

    def remove_namespace(self, name: str) -> None:
        self._label(name, None)

    def _label(self, namespace: str, labels: Mapping[str, str] | None) -> None:
        """A namespace has these labels; None if it is gone. Whoever waits in it may be served by now, or no longer."""
        if self._namespaces.get(namespace) == labels:
            return
        if labels is None:
            del self._namespaces[namespace]
        else:
            self._namespaces[namespace] = labels
        self.books.after_namespace(self._members_in(namespace))

    @abstractmethod
    def _members_in(self, namespace: str) -> Iterable[Entry]:
        """The workloads of a namespace."""

    def set_topology(self, topology: KueueTopology) -> None:
        self.books.ledger.topologies.set_topology(topology)
        self.books.after_topology(topology.metadata.name)

    def remove_topology(self, name: str) -> None:
        self.books.ledger.topologies.remove_topology(name)
        self.books.after_topology(name)

    @property
    def has_topologies(self) -> bool:
        """Whether places matter: without topologies, nothing needs to be known of nodes and pods here."""
        return bool(self.books.ledger.topologies)

    def set_node(self, node: Node) -> None:
        """Follow a node. That it is still there, which nodes say all the time, wakes nobody."""
        status = node.status
        shown = (node.metadata.labels, node.spec, status.allocatable, is_ready(status.conditions))
        if self._nodes.get(node.metadata.name) != shown:
            self._nodes[node.metadata.name] = shown
            self.books.ledger.topologies.set_node(node)
            self.books.after_nodes()

    def remove_node(self, name: str) -> None:
        self._nodes.pop(name, None)
        self.books.ledger.topologies.remove_node(name)

    def set_pod(self, pod: Pod) -> None:
        """A pod that may use a node in a topology without a workload that has its place."""
        self.books.ledger.topologies.set_pod(pod)
        if is_finished(pod):
            self.books.after_nodes()

    def remove_pod(self, uid: str) -> None:
        self.books.ledger.topologies.remove_pod(uid)
        self.books.after_nodes()

    def serves(self, queue: ClusterQueueState, namespace: str) -> bool:
        """Whether a queue takes in workloads of a namespace."""
        labels = self._namespaces.get(namespace)
        return queue.serves is not None and labels is not None and queue.serves.matches(labels)
