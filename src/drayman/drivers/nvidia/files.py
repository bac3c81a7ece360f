"""What a container needs of the host's files to use a GPU: device files, NVIDIA's libraries and programs, and hooks that put them in place.

Everything is looked for below a root, which tests replace. Paths in edits are those of the machine.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.nvidia.programs import is_installed, run
from drayman.plugins.cdi import DeviceNode, Hook, Mount
from drayman.plugins.files import write_atomically

_log: Final = logging.getLogger(__name__)
_COMMON: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_PROGRAMS: Final = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
)
_PROGRAM_FOLDERS: Final = ("usr/bin", "usr/local/bin", "usr/sbin", "bin", "usr/local/nvidia/bin")
_LIBRARIES: Final = (
    "libcuda.so",
    "libcudadebugger.so",
    "libnvcuvid.so",
    "libnvoptix.so",
    "libnvidia-",
)
_LIBRARY: Final = re.compile(r"^\s+(\S+) \(([^)]*)\) => (\S+)$")
_HOOK_NAME: Final = "nvidia-cdi-hook"
_HOOK: Final = f"usr/bin/{_HOOK_NAME}"
_READ_ONLY: Final = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_CAPABILITY: Final = re.compile(r"DeviceFile(Minor|Mode):\s*(\d+)")
_CAPABILITIES: Final = re.compile(r"^\s*(\d+) nvidia-caps$", re.MULTILINE)
_MODPROBE: Final = "nvidia-modprobe"
_PARAMETERS: Final = "proc/driver/nvidia/params"
_MAY_MODIFY: Final = "ModifyDeviceFiles: 1"
_LDCONFIG_FOLDERS: Final = ("/sbin", "/usr/sbin")
"""Which the path of a user who is not root often lacks."""


@dataclass(frozen=True, slots=True)
class Library:
    """One of NVIDIA's libraries on the machine."""

    name: str
    """The path by which it is listed: a link, usually."""
    file: str
    """What that leads to, with the version in its name."""


def common_nodes(root: Path) -> list[DeviceNode]:
    """The device files that every program needs, as far as the driver's modules have them."""
    if not (root / "dev/nvidia-uvm").exists() and is_installed(_MODPROBE):
        # Made for the first program that uses CUDA, which may be the one in the container, and it cannot.
        try:
            run([_MODPROBE, "-c", "0", "-u"])
        except PrepareError as error:
            _log.warning("/dev/nvidia-uvm is not there: %s", error)
    return [DeviceNode(path=f"/dev/{name}") for name in _COMMON if (root / "dev" / name).exists()]


def gpu_nodes(root: Path, minor: int, bus_id: str) -> list[DeviceNode]:
    """The device files of a GPU: its own, and those of the graphics system. Raises PrepareError."""
    drm = root / "sys/bus/pci/devices" / bus_id / "drm"
    names = sorted(path.name for path in drm.iterdir()) if drm.is_dir() else []
    graphics = [f"dev/dri/{name}" for name in names if name.startswith(("card", "renderD"))]
    found = [DeviceNode(path=f"/{path}") for path in graphics if (root / path).exists()]
    return [_own_node(root, minor), *found]


def partition_nodes(root: Path, minor: int, instance: int, compute: int) -> list[DeviceNode]:
    """The device files of a partition: that of its GPU, and those that give access to the part. Raises PrepareError.

    Not those of the graphics system: they are the whole GPU's, and partitions have no graphics.
    """
    home = f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{instance}"
    access = [_capability(root, f"{path}/access") for path in (home, f"{home}/ci{compute}")]
    return [_own_node(root, minor), *access]


def _own_node(root: Path, minor: int) -> DeviceNode:
    path = f"dev/nvidia{minor}"
    if not (root / path).exists():
        raise PrepareError(f"/{path} is not there; nvidia-modprobe -c {minor} -u makes it")
    return DeviceNode(path=f"/{path}")


def _capability(root: Path, path: str) -> DeviceNode:
    """With its numbers, because the file need not be on the machine: the runtime makes it in the container."""
    numbers = dict(_CAPABILITY.findall(_read(root, path)))
    major = _CAPABILITIES.search(_read(root, "proc/devices"))
    if "Minor" not in numbers:
        raise PrepareError(f"/{path} names no device file")
    if major is None:
        raise PrepareError("/proc/devices does not have nvidia-caps: MIG is not usable")
    return DeviceNode(
        path=f"/dev/nvidia-caps/nvidia-cap{numbers['Minor']}",
        type_="c",
        major=int(major[1]),
        minor=int(numbers["Minor"]),
        file_mode=int(numbers["Mode"]) if "Mode" in numbers else None,
    )


def _read(root: Path, path: str) -> str:
    try:
        return (root / path).read_text()
    except OSError as error:
        raise PrepareError(f"/{path} cannot be read: {error.strerror}") from error


def mounts(root: Path, libraries: Sequence[Library], *, by_all_names: bool) -> list[Mount]:
    """NVIDIA's libraries and programs, where they are on the machine.

    Programs look for libraries by names that hooks make in the container. Without hooks these are mounts too (`by_all_names`).
    """
    names = {file: file for file in [*_programs(root), *(each.file for each in libraries)]}
    if by_all_names:
        names |= {each.name: each.file for each in libraries}
    return [
        Mount(host_path=file, container_path=name, options=_READ_ONLY)
        for name, file in names.items()
    ]


def fixed_device_files(root: Path, folder: Path) -> list[Mount]:
    """Keeps NVIDIA's libraries from making the files of all GPUs in a container of root, as they do where one is missing.

    Runtimes refuse mounts below /proc; their hook for it is `disable-device-node-modification`.
    """
    try:
        said = (root / _PARAMETERS).read_text()
    except FileNotFoundError:
        return []
    if _MAY_MODIFY not in said:
        return []
    path = folder / "params"
    write_atomically(path, said.replace(_MAY_MODIFY, "ModifyDeviceFiles: 0").encode(), mode=0o444)
    return [Mount(host_path=str(path), container_path=f"/{_PARAMETERS}", options=_READ_ONLY)]


def _programs(root: Path) -> Iterator[str]:
    """In every folder that has them: one in the usual place may call another one."""
    folders: dict[Path, str] = {}
    for folder in _PROGRAM_FOLDERS:
        folders.setdefault((root / folder).resolve(), folder)  # /bin is /usr/bin on most machines
    for name in _PROGRAMS:
        for folder in folders.values():
            if (root / folder / name).exists():
                yield f"/{folder}/{name}"


def libraries(root: Path) -> list[Library]:
    """NVIDIA's libraries on the machine. Raises PrepareError."""
    cache, program = root / "etc/ld.so.cache", _ldconfig()
    if program is None or not cache.exists():
        _log.warning("%s cannot be read: containers get no libraries", cache)
        return []
    found = []
    for path in listed_libraries(run([program, "-p", "-C", str(cache)])):
        target = (root / path.lstrip("/")).resolve()
        if target.is_relative_to(root.resolve()) and target.exists():
            found.append(Library(path, f"/{target.relative_to(root.resolve())}"))
    return found


def _ldconfig() -> str | None:
    return shutil.which("ldconfig") or shutil.which("ldconfig", path=":".join(_LDCONFIG_FOLDERS))


def listed_libraries(text: str) -> list[str]:
    """NVIDIA's libraries of the usual word size in what `ldconfig -p` prints."""
    found = []
    for line in text.splitlines():
        match = _LIBRARY.match(line)
        if match and match[1].startswith(_LIBRARIES) and "64" in match[2]:
            found.append(match[3])
    return list(dict.fromkeys(found))


def hooks(root: Path, libraries: Sequence[Library]) -> list[Hook]:
    """What prepares a container for the libraries, as far as the container toolkit on the machine knows how. Raises PrepareError.

    Empty where none is installed.
    """
    program = root / _HOOK
    if not program.exists():
        return []
    known = set(run([str(program), "--help"]).replace(",", " ").split())
    folders = sorted({str(Path(each.file).parent) for each in libraries})
    links = [f"{Path(each.file).name}::{each.name}" for each in libraries if _is_link(each)]
    wanted = {
        "create-symlinks": [part for link in links for part in ("--link", link)],
        "update-ldcache": [part for folder in folders for part in ("--folder", folder)],
        "disable-device-node-modification": [],
    }
    return [
        Hook(hook_name="createContainer", path=f"/{_HOOK}", args=(_HOOK_NAME, name, *arguments))
        for name, arguments in wanted.items()
        if name in known
    ]


def _is_link(library: Library) -> bool:
    """Whether it has a name that `ldconfig` does not make in the container: one without a version."""
    return library.name.endswith(".so") and library.name != library.file
