"""Writes the Python modules of the `.proto` files: `python -m drayman.plugins.protocol.generating`. Needs grpcio-tools."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
_ROOT: Final = HERE.parent.parent.parent
"""Files are named from here, so that they do not meet others of the same name in the registry of protobuf."""


def generate(target: Path) -> None:
    """Write the modules and their types below a folder, in the folders of their packages. Raises RuntimeError."""
    protoc = import_module("grpc_tools.protoc")
    sources = [str(path.relative_to(_ROOT)) for path in sorted(HERE.glob("*.proto"))]
    arguments = ["protoc", f"-I{_ROOT}", f"-I{files('grpc_tools') / '_proto'}"]
    arguments += [f"--python_out={target}", f"--pyi_out={target}", *sources]
    status = protoc.main(arguments)
    if status != 0:
        raise RuntimeError(f"protoc ended with status {status}")


if __name__ == "__main__":
    generate(_ROOT)
    sys.exit(0)
