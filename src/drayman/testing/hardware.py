"""Machines for tests: folders that look like the sysfs, procfs and device files of hardware that is not there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


class FakeMachine:
    """A root folder to fill. Paths are given as on the machine, with or without the leading slash."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, path: str) -> Path:
        """Where a path of the machine is."""
        return self.root / path.lstrip("/")

    def file(self, path: str, text: str | bytes = "") -> Path:
        """A file. Like those of sysfs, texts end with a line."""
        found = self.path(path)
        found.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            found.write_bytes(text)
        else:
            found.write_text(f"{text}\n" if text else "")
        return found

    def files(self, folder: str, contents: Mapping[str, str]) -> Path:
        """Files of one folder, by name."""
        self.path(folder).mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            self.file(f"{folder}/{name}", text)
        return self.path(folder)

    def link(self, path: str, target: str) -> Path:
        """A symbolic link to a path of the machine: relative, as those of sysfs are, so that it stays in this root."""
        found = self.path(path)
        found.parent.mkdir(parents=True, exist_ok=True)
        found.symlink_to(os.path.relpath(self.path(target), found.parent))
        return found

    def pci(
        self,
        address: str,
        *,
        vendor: str,
        device: str,
        class_: str,
        root: str = "",
        numa: int = -1,
        driver: str = "",
        files: Mapping[str, str] | None = None,
    ) -> str:
        """A PCI device; returns its folder below /sys/devices.

        `root` is the PCIe root, such as `pci0000:15`; by default bus 0 of its domain. A device that is not on the root's own bus sits
        behind a bridge.
        """
        domain, bus, _ = address.split(":")
        root = root or f"pci{domain}:00"
        bridge = "" if root.endswith(f":{bus}") else f"/{domain}:{root.rpartition(':')[2]}:01.0"
        folder = f"sys/devices/{root}{bridge}/{address}"
        about = {"vendor": vendor, "device": device, "class": class_, "numa_node": str(numa)}
        self.files(folder, {**about, **(files or {})})
        self.link(f"sys/bus/pci/devices/{address}", folder)
        if driver:
            home = f"sys/bus/pci/drivers/{driver}"
            self.path(home).mkdir(parents=True, exist_ok=True)
            self.link(f"{folder}/driver", home)
            self.link(f"{home}/{address}", folder)
        return folder
