"""`rocm-smi` and `hl-smi`: the accelerators of AMD and Habana in a container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.node.simulated.answering.output import Output, columns, not_found, unknown_option
from drayman.node.simulated.answering.sight import AMD, GAUDI, SeenDevice, Sight

ROCM: Final = "rocm-smi"
HABANA: Final = "hl-smi"


def rocm_smi(sight: Sight, words: Sequence[str]) -> Output:
    """The GPUs of AMD, whole ones and partitions."""
    devices = sight.of(AMD)
    if not devices:
        return not_found(ROCM, f"the container has no device of {AMD}")
    if words:
        return unknown_option(ROCM, words[0], "the call without options")
    rows = [("Device", "Product", "Bus", "Partition", "VRAM", "Node")]
    for number, device in enumerate(sorted(devices, key=lambda each: each.index)):
        rows.append(
            (
                f"GPU[{number}]",
                device.attribute("productName"),
                device.attribute("pciAddr") or device.attribute("parentPciAddr"),
                device.attribute("partitionProfile"),
                _memory(device),
                f"/dev/dri/renderD{device.attribute('renderIndex')}",
            )
        )
    return Output(f"ROCm System Management Interface (simulated)\n{columns(rows)}")


def hl_smi(sight: Sight, words: Sequence[str]) -> Output:
    """The accelerators of Habana."""
    devices = sight.of(GAUDI)
    if not devices:
        return not_found(HABANA, f"the container has no device of {GAUDI}")
    if words and tuple(words) != ("-L",):
        return unknown_option(HABANA, words[0], "-L")
    rows = [("AIP", "Name", "Serial", "Device")]
    for number, device in enumerate(devices):
        rows.append(
            (str(number), device.attribute("model"), device.attribute("serial"), device.name)
        )
    return Output(f"HL-SMI (simulated)\n{columns(rows)}")


def _memory(device: SeenDevice) -> str:
    return "N/A" if device.memory is None else f"{device.memory} MiB"
