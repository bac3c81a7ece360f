"""Labels by which pods chose nodes for their devices, as selectors on the devices.

A label is carried over only where an attribute of the driver says exactly the same. Labels that say something about the node,
such as how many devices it has, stay where they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from drayman.migrate.vendors import AMD, NVIDIA, NVIDIA_MIG, TPU, attribute, capacity, quoted


@dataclass(frozen=True, slots=True)
class LabelMeaning:
    """What a label with a value says about devices of some classes. An empty expression is true for any device."""

    classes: tuple[str, ...]
    expression: str


def _product(value: str) -> str | None:
    """Feature discovery writes the product's name with dashes for blanks, and adds how the GPU is partitioned or shared."""
    if re.search(r"-(?:SHARED|MIG-.+)$", value):
        return None
    return f'{attribute(NVIDIA, "productName")}.replace(" ", "-") == {quoted(value)}'


def _family(value: str) -> str:
    name = attribute(NVIDIA, "architecture")
    return f'{name}.lowerAscii().replace(" ", "-") == {quoted(value)}'


def _memory(value: str) -> str | None:
    if not value.isdigit():
        return None
    return f"{capacity(NVIDIA, 'memory')}.compareTo(quantity({quoted(f'{value}Mi')})) == 0"


def _major(value: str) -> str | None:
    return (
        f"{attribute(NVIDIA, 'cudaComputeCapability')}.major() == {value}"
        if value.isdigit()
        else None
    )


def _gke(value: str) -> str | None:
    product = _GKE_PRODUCTS.get(value)
    return product and f"{attribute(NVIDIA, 'productName')} == {quoted(product)}"


def _equal(driver: str, name: str) -> Callable[[str], str | None]:
    return lambda value: f"{attribute(driver, name)} == {quoted(value)}"


_GKE_PRODUCTS: Final = {
    "nvidia-a100-80gb": "NVIDIA A100-SXM4-80GB",
    "nvidia-b200": "NVIDIA B200",
    "nvidia-gb200": "NVIDIA GB200",
    "nvidia-h100-80gb": "NVIDIA H100 80GB HBM3",
    "nvidia-h200-141gb": "NVIDIA H200",
    "nvidia-l4": "NVIDIA L4",
    "nvidia-tesla-a100": "NVIDIA A100-SXM4-40GB",
    "nvidia-tesla-t4": "Tesla T4",
}
"""Machines that differ from others in more than the product, such as the one with nvidia-h100-mega-80gb, are not here."""

_GPUS: Final = (NVIDIA, NVIDIA_MIG)
"""A partition has the attributes of its GPU, but its own memory."""

_MEANINGS: Final[dict[str, tuple[tuple[str, ...], Callable[[str], str | None]]]] = {
    "nvidia.com/gpu.product": (_GPUS, _product),
    "nvidia.com/gpu.family": (_GPUS, _family),
    "nvidia.com/gpu.memory": ((NVIDIA,), _memory),
    "nvidia.com/gpu.compute.major": (_GPUS, _major),
    "nvidia.com/gpu.present": (_GPUS, lambda value: "" if value == "true" else None),
    "cloud.google.com/gke-accelerator": (_GPUS, _gke),
    "amd.com/gpu.product-name": ((AMD,), _equal(AMD, "productName")),
    "cloud.google.com/gke-tpu-accelerator": ((TPU,), _equal(TPU, "accelerator")),
    "cloud.google.com/gke-tpu-topology": ((TPU,), _equal(TPU, "topology")),
}
_ABOUT_DEVICES: Final = ("nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "cloud.google.com/gke-")


def meaning_of(label: str, value: str) -> LabelMeaning | None:
    """What a label says about devices; None where no attribute says the same."""
    found = _MEANINGS.get(label)
    if found is None:
        return None
    classes, translate = found
    expression = translate(value)
    return None if expression is None else LabelMeaning(classes, expression)


def is_about_devices(label: str) -> bool:
    """Whether a label is one that vendors put on nodes because of their devices."""
    return label.startswith(_ABOUT_DEVICES)
