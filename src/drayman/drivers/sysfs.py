"""Reading the small files by which the kernel describes devices, below a root that tests replace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def read_text(path: Path) -> str | None:
    """The content of a file of sysfs without the line's end; None if there is no such file. Raises OSError."""
    try:
        return path.read_text(errors="replace").strip()
    except FileNotFoundError:
        return None


def properties(path: Path) -> dict[str, str]:
    """A file with a name and a value in each line; empty if there is none. Raises OSError."""
    text = read_text(path) or ""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def entries(folder: Path, prefix: str = "") -> Iterator[Path]:
    """What a folder has whose names begin like that, by name; nothing if it is not there. Raises OSError."""
    if folder.is_dir():
        yield from sorted(path for path in folder.iterdir() if path.name.startswith(prefix))


def numbered(folder: Path, prefix: str) -> dict[int, Path]:
    """The entries `<prefix><number>` of a folder, by number. Raises OSError."""
    found = {path.name.removeprefix(prefix): path for path in entries(folder, prefix)}
    return {int(rest): path for rest, path in sorted(found.items()) if rest.isdecimal()}


def address_of(link: Path) -> str:
    """The PCI address to which an entry of a class belongs, by its link `device`."""
    return (link / "device").resolve().name


def accel_numbers(root: Path) -> dict[str, int]:
    """The number of the device file of each accelerator, by PCI address. Raises OSError."""
    found = numbered(root / "sys/class/accel", "accel")
    return {address_of(path): number for number, path in found.items()}


def verbs_of(root: Path, address: str) -> list[str]:
    """The device files by which programs use the network of a PCI device directly, without the leading slash. Raises OSError."""
    return [
        f"dev/infiniband/{path.name}"
        for path in entries(root / "sys/class/infiniband_verbs", "uverbs")
        if address_of(path) == address
    ]
