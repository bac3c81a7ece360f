"""`ls` in a container: the device nodes that follow from what its drivers publish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.node.simulated.answering.output import Output, unknown_option
from drayman.node.simulated.answering.sight import Sight

_PROGRAM: Final = "ls"
_ONE_PER_LINE: Final = "-1"
_TROUBLE: Final = 2


def ls(sight: Sight, words: Sequence[str]) -> Output:
    """Of /dev and what is below it. A long listing would need numbers that the machine alone gives to its device nodes."""
    for word in words:
        if word.startswith("-") and word != _ONE_PER_LINE:
            return unknown_option(_PROGRAM, word, _ONE_PER_LINE)
    paths = [word for word in words if word != _ONE_PER_LINE]
    if not paths or not all(f"{path}/".startswith("/dev/") for path in paths):
        return Output(error="ls: simulated for /dev and below\n", code=_TROUBLE)
    nodes = sight.device_nodes
    files = sorted(path for path in paths if path in nodes)
    folders = {path: _below(path, nodes) for path in sorted(paths) if path not in nodes}
    parts = ["".join(f"{path}\n" for path in files)] if files else []
    for path, names in folders.items():
        title = f"{path}:\n" if len(paths) > 1 else ""
        if names:
            parts.append(title + "".join(f"{name}\n" for name in names))
    missing = [path for path, names in folders.items() if not names]
    error = "".join(f"ls: cannot access '{path}': No such file or directory\n" for path in missing)
    return Output("\n".join(parts), error, _TROUBLE if missing else 0)


def visible_paths(sight: Sight) -> list[str]:
    """What patterns can fit, in the order of a shell: device nodes, and the folders that they are in."""
    found = {"/dev"}
    for node in sight.device_nodes:
        folders = node.split("/")
        found |= {"/".join(folders[:length]) for length in range(3, len(folders) + 1)}
    return sorted(found)


def _below(path: str, nodes: Sequence[str]) -> list[str]:
    folder = f"{path.rstrip('/')}/"
    names = (node.removeprefix(folder) for node in nodes if node.startswith(folder))
    return sorted({name.partition("/")[0] for name in names})
