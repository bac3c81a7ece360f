"""What a container needs of the host's files to use a GPU: device files, NVIDIA's libraries and programs, and hooks that put them in place.

Everything is looked for below a root, which tests replace. Paths in edits are those of the machine.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.nvidia.programs import run
from drayman.plugins.cdi import DeviceNode, Hook, Mount

_log: Final = logging.getLogger(__name__)
_COMMON: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_PROGRAMS: Final = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
)
_PROGRAM_FOLDERS: Final = ("usr/bin", "usr/local/bin", "usr/sbin", "bin")
_LIBRARIES: Final = (
    "libcuda.so",
    "libcudadebugger.so",
    "libnvcuvid.so",
    "libnvoptix.so",
    "libnvidia-",
)
_LIBRARY: Final = re.compile(r"^\s+(\S+) \(([^)]*)\) => (\S+)$")
_HOOK: Final = "usr/bin/nvidia-cdi-hook"
_READ_ONLY: Final = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_MINOR: Final = re.compile(r"DeviceFileMinor:\s*(\d+)")


def common_nodes(root: Path) -> list[DeviceNode]:
    """The device files that every program needs, as far as the driver's modules have made them."""
    return [DeviceNode(path=f"/dev/{name}") for name in _COMMON if (root / "dev" / name).exists()]


def gpu_nodes(root: Path, minor: int, bus_id: str) -> list[DeviceNode]:
    """The device files of a GPU: its own, and those of the graphics system. Raises PrepareError."""
    own = f"dev/nvidia{minor}"
    if not (root / own).exists():
        raise PrepareError(f"/{own} is not there; nvidia-modprobe -c {minor} -u makes it")
    drm = root / "sys/bus/pci/devices" / bus_id / "drm"
    names = sorted(path.name for path in drm.iterdir()) if drm.is_dir() else []
    graphics = [f"dev/dri/{name}" for name in names if name.startswith(("card", "renderD"))]
    return [DeviceNode(path=f"/{path}") for path in (own, *graphics) if (root / path).exists()]


def partition_nodes(root: Path, minor: int, instance: int, compute: int) -> list[DeviceNode]:
    """The device files that give access to a partition. Raises PrepareError."""
    home = f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{instance}"
    return [_capability(root, f"{path}/access") for path in (home, f"{home}/ci{compute}")]


def _capability(root: Path, path: str) -> DeviceNode:
    try:
        found = _MINOR.search((root / path).read_text())
    except OSError as error:
        raise PrepareError(f"/{path} cannot be read: {error.strerror}") from error
    if found is None:
        raise PrepareError(f"/{path} names no device file")
    node = f"dev/nvidia-caps/nvidia-cap{found[1]}"
    if not (root / node).exists():
        run(["nvidia-modprobe", "-f", f"/{path}"])
    return DeviceNode(path=f"/{node}")


def mounts_of_libraries(root: Path) -> list[Mount]:
    """NVIDIA's libraries and programs, where they are on the machine. Raises PrepareError."""
    paths = [*_programs(root), *_libraries(root)]
    return [
        Mount(host_path=path, container_path=path, options=_READ_ONLY)
        for path in dict.fromkeys(paths)
    ]


def _programs(root: Path) -> Iterator[str]:
    for name in _PROGRAMS:
        for folder in _PROGRAM_FOLDERS:
            if (root / folder / name).exists():
                yield f"/{folder}/{name}"
                break


def _libraries(root: Path) -> Iterator[str]:
    cache = root / "etc/ld.so.cache"
    if shutil.which("ldconfig") is None or not cache.exists():
        _log.warning("%s cannot be read: containers get no libraries", cache)
        return
    for path in listed_libraries(run(["ldconfig", "-p", "-C", str(cache)])):
        # What is listed is a link; what has to be in the container is the file with its version.
        target = (root / path.lstrip("/")).resolve()
        if target.is_relative_to(root.resolve()) and target.exists():
            yield f"/{target.relative_to(root.resolve())}"


def listed_libraries(text: str) -> list[str]:
    """NVIDIA's libraries of the usual word size in what `ldconfig -p` prints."""
    found = []
    for line in text.splitlines():
        match = _LIBRARY.match(line)
        if match and match[1].startswith(_LIBRARIES) and "64" in match[2]:
            found.append(match[3])
    return list(dict.fromkeys(found))


def hooks(root: Path, mounts: list[Mount]) -> list[Hook]:
    """What makes the libraries known in a container, where NVIDIA's container toolkit is installed."""
    if not (root / _HOOK).exists():
        return []
    folders = sorted(
        {str(Path(each.container_path).parent) for each in mounts if ".so" in each.container_path}
    )
    arguments = [part for folder in folders for part in ("--folder", folder)]
    return [
        Hook(
            hook_name="createContainer",
            path=f"/{_HOOK}",
            args=("nvidia-cdi-hook", "update-ldcache", *arguments),
        )
    ]
