"""`nvidia-smi`: the GPUs of a container, as a table, as a list (`-L`) and as values (`--query-gpu`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from drayman.node.simulated.answering.output import Output, not_found, unknown_option
from drayman.node.simulated.answering.sight import MEBIBYTE, NVIDIA, SeenDevice, Sight

PROGRAM: Final = "nvidia-smi"
_WIDTHS: Final = (41, 24, 22)
_WHOLE: Final = sum(_WIDTHS) + len(_WIDTHS) - 1
_QUERY: Final = "--query-gpu="
_FORMAT: Final = "--format="


@dataclass(frozen=True, slots=True)
class _Gpu:
    """A GPU that is visible, whole or by some of its partitions."""

    uuid: str
    device: SeenDevice
    partitions: tuple[SeenDevice, ...] = ()

    @property
    def product(self) -> str:
        return self.device.attribute("productName")

    @property
    def memory(self) -> str:
        """Of what is visible of it."""
        parts = [device.memory for device in self.partitions or (self.device,)]
        known = [part for part in parts if part is not None]
        return f"{sum(known)}" if known else "N/A"

    @property
    def bus_id(self) -> str:
        short = self.device.attribute("resource.kubernetes.io/pciBusID")
        return f"0000{short.upper()}" if short else "N/A"

    @property
    def driver_release(self) -> str:
        """As NVIDIA writes it, with two digits at its end: what is published is a semantic version, which has no leading zeros."""
        first, dot, last = self.device.attribute("driverVersion").rpartition(".")
        return f"{first}{dot}{last:0>2}" if dot else last


def run(sight: Sight, words: Sequence[str]) -> Output:
    """What the program prints in a container."""
    gpus = _gpus(sight)
    if not gpus:
        return not_found(PROGRAM, f"the container has no device of {NVIDIA}")
    if not words:
        return Output("".join(f"{line}\n" for line in _table(gpus)))
    if tuple(words) in (("-L",), ("--list-gpus",)):
        return Output("".join(f"{line}\n" for line in _listed(gpus)))
    if words[0].startswith(_QUERY):
        return _queried(gpus, words)
    return unknown_option(PROGRAM, words[0], "-L, --query-gpu=...")


def _gpus(sight: Sight) -> list[_Gpu]:
    """In the order of their bus addresses, as the program counts them."""
    wholes: dict[str, SeenDevice] = {}
    parts: dict[str, list[SeenDevice]] = {}
    for device in sight.of(NVIDIA):
        sort = device.attribute("type")
        if sort == "mig":
            parts.setdefault(device.attribute("parentUUID"), []).append(device)
        elif sort != "vfio":
            wholes[device.attribute("uuid")] = device
    found = [_Gpu(uuid, device) for uuid, device in wholes.items()]
    found += [
        _Gpu(uuid, devices[0], tuple(devices))
        for uuid, devices in parts.items()
        if uuid not in wholes
    ]
    return sorted(found, key=lambda gpu: (gpu.bus_id, gpu.device.index))


def _listed(gpus: Sequence[_Gpu]) -> Iterator[str]:
    for number, gpu in enumerate(gpus):
        yield f"GPU {number}: {gpu.product} (UUID: {gpu.uuid})"
        for part, device in enumerate(gpu.partitions):
            profile = device.attribute("profile")
            yield f"  MIG {profile:<15} Device {part:>2}: (UUID: {_partition_uuid(gpu, device)})"


def _partition_uuid(gpu: _Gpu, device: SeenDevice) -> str:
    """A partition has one only once it is made; this one is always the same for the same place."""
    return f"MIG-{uuid5(NAMESPACE_OID, f'{gpu.uuid}/{device.name}')}"


def _table(gpus: Sequence[_Gpu]) -> Iterator[str]:
    driver = gpus[0].driver_release
    cuda = gpus[0].device.attribute("cudaDriverVersion").rpartition(".")[0]
    line, cells = f"+{'-' * _WHOLE}+", f"+{'+'.join('-' * width for width in _WIDTHS)}+"
    title = f" NVIDIA-SMI {driver} (simulated)"
    yield line
    yield _row((f"{title:<37}Driver Version: {driver:<14} CUDA Version: {cuda}",), (_WHOLE,))
    yield cells
    yield _row(
        (
            " GPU  Name                 Persistence-M",
            " Bus-Id          Disp.A",
            " Volatile Uncorr. ECC",
        )
    )
    yield _row(
        (
            " Fan  Temp   Perf          Pwr:Usage/Cap",
            "           Memory-Usage",
            " GPU-Util  Compute M.",
        )
    )
    yield _row(("", "", f"{'MIG M.':>21}"))
    yield cells.replace("-", "=").replace("+", "|", 1)[:-1] + "|"
    for number, gpu in enumerate(gpus):
        mode = "Enabled" if gpu.partitions else "Disabled"
        memory = "N/A" if gpu.memory == "N/A" else f"0MiB / {gpu.memory:>6}MiB"
        yield _row(
            (f"{number:>4}  {gpu.product:<29}  N/A", f"{gpu.bus_id:>19} Off", f"{'N/A':>21}")
        )
        yield _row(
            (" N/A   N/A    N/A             N/A /  N/A", f"{memory:>23}", "     N/A      Default")
        )
        yield _row(("", "", f"{mode:>21}"))
        yield cells
    if any(gpu.partitions for gpu in gpus):
        yield from _partitions(gpus, line)
    if any(_limited(gpu) for gpu in gpus):
        yield from _limits(gpus, line)
    yield ""
    yield line
    yield _row((" Processes: none, because this node is simulated",), (_WHOLE,))
    yield line


def _partitions(gpus: Sequence[_Gpu], line: str) -> Iterator[str]:
    yield ""
    yield line
    yield _row((" MIG devices:",), (_WHOLE,))
    yield _row((f"  GPU  MIG   {'Profile':<18}{'Memory':>12}{'SM':>6}   Device",), (_WHOLE,))
    yield f"|{'=' * _WHOLE}|"
    for number, gpu in enumerate(gpus):
        for part, device in enumerate(gpu.partitions):
            units = device.published.capacity.get("multiprocessors")
            memory = "N/A" if device.memory is None else f"{device.memory}MiB"
            shown = (
                f"{number:>5}{part:>5}   {device.attribute('profile'):<18}{memory:>12}"
                f"{'N/A' if units is None else str(units.value):>6}   {device.name}"
            )
            yield _row((shown,), (_WHOLE,))
    yield line


def _limited(gpu: _Gpu) -> list[SeenDevice]:
    """What is visible of a GPU and has a limit on its memory."""
    return [each for each in gpu.partitions or (gpu.device,) if each.limit is not None]


def _limits(gpus: Sequence[_Gpu], line: str) -> Iterator[str]:
    yield ""
    yield line
    yield _row((" Memory limit of each program (MPS):",), (_WHOLE,))
    yield f"|{'=' * _WHOLE}|"
    for number, gpu in enumerate(gpus):
        for device in _limited(gpu):
            assert device.limit is not None, "these have one"
            limit = f"{device.limit.rounded_up() // MEBIBYTE}MiB"
            yield _row((f"{number:>5}   {device.name:<40}{limit:>12}",), (_WHOLE,))
    yield line


def _row(cells: Sequence[str], widths: Sequence[int] = _WIDTHS) -> str:
    shown = (f"{text:<{width}.{width}}" for text, width in zip(cells, widths, strict=True))
    return f"|{'|'.join(shown)}|"


def _queried(gpus: Sequence[_Gpu], words: Sequence[str]) -> Output:
    """`--query-gpu=name,uuid --format=csv,noheader`."""
    asked = [name.strip() for name in words[0].removeprefix(_QUERY).split(",")]
    forms = [
        word.removeprefix(_FORMAT).split(",") for word in words[1:] if word.startswith(_FORMAT)
    ]
    if len(words) != 2 or not forms or forms[0][0] != "csv":
        return Output(
            error="nvidia-smi: --query-gpu needs --format=csv[,noheader][,nounits]\n", code=1
        )
    form = forms[0]
    unit = "" if "nounits" in form else " MiB"
    lines = [] if "noheader" in form else [", ".join(_heading(name, unit) for name in asked)]
    for number, gpu in enumerate(gpus):
        values = _values(number, gpu, unit)
        for name in asked:
            if name not in values:
                known = ", ".join(values)
                text = f'Field "{name}" is not a valid field to query; simulated are {known}\n'
                return Output(error=text, code=2)
        lines.append(", ".join(values[name] for name in asked))
    return Output("".join(f"{line}\n" for line in lines))


def _heading(name: str, unit: str) -> str:
    return f"{name} [MiB]" if name.startswith("memory.") and unit else name


def _values(number: int, gpu: _Gpu, unit: str) -> dict[str, str]:
    capability = gpu.device.attribute("cudaComputeCapability")
    return {
        "index": str(number),
        "name": gpu.product,
        "gpu_name": gpu.product,
        "uuid": gpu.uuid,
        "gpu_uuid": gpu.uuid,
        "pci.bus_id": gpu.bus_id,
        "driver_version": gpu.driver_release,
        "compute_cap": ".".join(capability.split(".")[:2]),
        "memory.total": f"{gpu.memory}{unit}",
        "memory.used": f"0{unit}",
        "memory.free": f"{gpu.memory}{unit}",
        "mig.mode.current": "Enabled" if gpu.partitions else "Disabled",
    }
