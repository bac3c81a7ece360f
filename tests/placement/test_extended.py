"""Extended resources: which class stands behind a name, and the claim a pod needs."""

from __future__ import annotations

import pytest

from drayman.api.core import Container, Pod, PodSpec, ResourceRequirements
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.resource import DeviceClass, DeviceClassSpec
from drayman.placement.extended import ExtendedResources, extended_claim

GPU = "example.com/gpu"
NIC = "example.com/nic"


def device_class(
    name: str, resource: str = "", created: str = "2026-01-01T00:00:00Z"
) -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name, creation_timestamp=created),
        spec=DeviceClassSpec(extended_resource_name=resource or None),
    )


def container(name: str, restart_policy: str | None = None, **requests: str) -> Container:
    wanted = {
        GPU if key == "gpu" else NIC if key == "nic" else key: Quantity.parse(value)
        for key, value in requests.items()
    }
    return Container(
        name=name, restart_policy=restart_policy, resources=ResourceRequirements(requests=wanted)
    )


def pod(*containers: Container, init: tuple[Container, ...] = ()) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", namespace="default", uid="p"),
        spec=PodSpec(containers=containers, init_containers=init),
    )


def claim(of: Pod, **classes: str) -> tuple[dict[str, tuple[str, int]], list[tuple[str, str]]]:
    """The requests, and which container is served by which of them."""
    named = {GPU if key == "gpu" else NIC: value for key, value in classes.items()}
    found = extended_claim(of, named)
    assert found is not None
    requests = {
        request.name: (request.exactly.device_class_name, request.exactly.count or 0)
        for request in found.spec.devices.requests
        if request.exactly is not None
    }
    return requests, [(m.container_name, m.request_name) for m in found.mappings]


class TestNames:
    """spec/dra.md 6.1, without its defects."""

    def test_explicit_and_implicit_names(self) -> None:
        """A class is reached by the name it declares and by the name made from its own."""
        known = ExtendedResources()
        known.apply(device_class("gpu", GPU))
        assert known.class_of(GPU) == "gpu"
        assert known.class_of("deviceclass.resource.kubernetes.io/gpu") == "gpu"
        assert known.class_of("example.com/other") is None

    def test_the_class_made_last_owns_a_name(self) -> None:
        """Of two classes with one name the newer counts."""
        known = ExtendedResources()
        known.apply(device_class("old", GPU, "2026-01-01T00:00:00Z"))
        known.apply(device_class("new", GPU, "2026-01-02T00:00:00Z"))
        assert known.class_of(GPU) == "new"

    def test_equal_age_goes_by_name(self) -> None:
        """Made in the same second: the first by name."""
        known = ExtendedResources()
        known.apply(device_class("b", GPU))
        known.apply(device_class("a", GPU))
        assert known.class_of(GPU) == "a"

    def test_the_loser_takes_over(self) -> None:
        """When the owner of a name goes or gives it up, the other class serves it; it kept its implicit name all the time."""
        known = ExtendedResources()
        known.apply(device_class("old", GPU, "2026-01-01T00:00:00Z"))
        known.apply(device_class("new", GPU, "2026-01-02T00:00:00Z"))
        assert known.class_of("deviceclass.resource.kubernetes.io/old") == "old"
        known.apply(device_class("new", "", "2026-01-02T00:00:00Z"))
        assert known.class_of(GPU) == "old"
        known.remove("old")
        assert known.class_of(GPU) is None


class TestRequests:
    """spec/dra.md 6.3."""

    def test_request_index_counts_all_resources_of_the_container(self) -> None:
        """Names carry the position among all sorted requests, CPU and memory included."""
        requests, mappings = claim(pod(container("c", cpu="1", gpu="2", memory="1Gi")), gpu="g")
        assert requests == {"container-0-request-1": ("g", 2)}
        assert mappings == [("c", "container-0-request-1")]

    def test_containers_have_requests_of_their_own(self) -> None:
        """Two containers, two requests."""
        requests, _ = claim(pod(container("a", gpu="1"), container("b", gpu="2")), gpu="g")
        assert requests == {"container-0-request-0": ("g", 1), "container-1-request-0": ("g", 2)}

    def test_init_container_borrows(self) -> None:
        """An init container uses the devices of containers that start after it."""
        spec = pod(container("c", gpu="2"), init=(container("i", gpu="1"),))
        requests, mappings = claim(spec, gpu="g")
        assert requests == {"container-1-request-0": ("g", 2)}
        assert mappings == [("c", "container-1-request-0"), ("i", "container-1-request-0")]

    def test_init_container_that_needs_more(self) -> None:
        """What it cannot borrow is an extra request."""
        spec = pod(container("c", gpu="1"), init=(container("i", gpu="3"),))
        requests, mappings = claim(spec, gpu="g")
        assert requests == {"container-0-request-0": ("g", 2), "container-1-request-0": ("g", 1)}
        assert mappings[1:] == [("i", "container-1-request-0"), ("i", "container-0-request-0")]

    def test_only_the_largest_extra_is_kept(self) -> None:
        """Init containers run one after the other, so one extra request serves them all."""
        inits = (container("i", gpu="2"), container("j", gpu="4"))
        requests, mappings = claim(pod(container("c", gpu="1"), init=inits), gpu="g")
        assert requests == {"container-1-request-0": ("g", 3), "container-2-request-0": ("g", 1)}
        assert ("i", "container-1-request-0") in mappings

    def test_sidecar_counts_as_lasting(self) -> None:
        """A restartable init container has devices of its own, which earlier init containers may borrow."""
        inits = (container("i", gpu="1"), container("s", "Always", gpu="1"))
        requests, mappings = claim(pod(container("c", gpu="1"), init=inits), gpu="g")
        assert requests == {"container-1-request-0": ("g", 1), "container-2-request-0": ("g", 1)}
        assert ("i", "container-1-request-0") in mappings

    def test_requests_are_sorted_as_text(self) -> None:
        """container-10 comes before container-2."""
        containers = tuple(container(f"c{i}", gpu="1") for i in range(11))
        requests, _ = claim(pod(*containers), gpu="g")
        names = list(requests)
        assert names == sorted(names)
        assert names.index("container-10-request-0") < names.index("container-2-request-0")

    @pytest.mark.parametrize("amount", ["0", "500m"])
    def test_no_whole_device_is_no_request(self, amount: str) -> None:
        """Nothing, or a fraction, asks for no device."""
        assert extended_claim(pod(container("c", gpu=amount)), {GPU: "g"}) is None
