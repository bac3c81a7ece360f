"""The root directory of a node: whose it is, and where drivers in processes of their own find things there.

A node says in a file of its root whose that is. A driver that served one node beside the folders of another would publish the devices of
this machine for the wrong one, and undo what the driver of that node publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from drayman.cli.errors import UserError, reason
from drayman.plugins.files import write_atomically

_FILE: Final = "node-name"


def record_node(root: Path, node: str) -> None:
    """Say in the root directory of a node whose it is. Raises UserError."""
    try:
        write_atomically(root / _FILE, node.encode())
    except OSError as error:
        raise UserError(f"{root / _FILE}: {reason(error)}") from error


def refuse_root_of_another(root: Path, node: str) -> None:
    """Raises UserError where a root directory says that it is another node's. One of an older version says nothing."""
    try:
        found = (root / _FILE).read_text(errors="replace").strip()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{root / _FILE}: {reason(error)}") from error
    if found != node:
        raise UserError(f"{root} is the root directory of {found}, not of {node}")


def folders_beside(root: Path, driver: str, given: Mapping[str, Any]) -> dict[str, Path]:
    """Where a driver has its folders beside the node of a root directory, but for those that were given. Raises UserError."""
    from drayman.node.agent.running import AgentOptions

    node = AgentOptions("", root)
    if not node.registry_dir.is_dir():
        raise UserError(
            f"{root} is not the root directory of a node: there is no {node.registry_dir.name} in it;"
            " `drayman node run` says where its pods are, and `drayman up --node` has it at `node` in the data directory"
        )
    folders = {
        "plugin_dir": node.plugins_dir / driver,
        "registry_dir": node.registry_dir,
        "cdi_dir": node.cdi_dir,
    }
    return {name: folder for name, folder in folders.items() if given[name] is None}
