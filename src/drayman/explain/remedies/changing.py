"""The state of the world with something changed, and put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.explain.remedies.users import User
from drayman.placement.state import ClusterState


@contextmanager
def with_node(state: ClusterState, node: Node) -> Iterator[None]:
    """A node that is there, but like this."""
    before = state.nodes[node.metadata.name].node
    state.set_node(node)
    try:
        yield
    finally:
        state.set_node(before)


@contextmanager
def with_class(
    state: ClusterState, device_class: DeviceClass, before: DeviceClass
) -> Iterator[None]:
    state.set_class(device_class)
    try:
        yield
    finally:
        state.set_class(before)


@contextmanager
def with_slice(state: ClusterState, slice_: ResourceSlice, before: ResourceSlice) -> Iterator[None]:
    state.set_slice(slice_)
    try:
        yield
    finally:
        state.set_slice(before)


@contextmanager
def without_rule(state: ClusterState, rule: DeviceTaintRule) -> Iterator[None]:
    state.remove_taint_rule(rule)
    try:
        yield
    finally:
        state.set_taint_rule(rule)


@contextmanager
def without_users(state: ClusterState, users: Sequence[User]) -> Iterator[None]:
    """Users whose pods are gone and whose claims have given back their devices."""
    with ExitStack() as undoing:
        for user in users:
            for pod in user.pods:
                undoing.enter_context(_without_pod(state, pod))
            for claim in user.claims:
                undoing.enter_context(_without_claim(state, claim))
        yield


@contextmanager
def _without_pod(state: ClusterState, pod: Pod) -> Iterator[None]:
    state.remove_pod(pod.metadata.uid)
    try:
        yield
    finally:
        state.set_placed_pod(pod)


@contextmanager
def _without_claim(state: ClusterState, claim: ResourceClaim) -> Iterator[None]:
    state.remove_claim(claim)
    try:
        yield
    finally:
        state.set_claim(claim)
