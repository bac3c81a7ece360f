"""The programs that a simulated container has. Each is a function of what the container sees."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from drayman.node.simulated.answering import nvidia
from drayman.node.simulated.answering.accelerators import HABANA, ROCM, hl_smi, rocm_smi
from drayman.node.simulated.answering.output import Output, not_found
from drayman.node.simulated.answering.sight import Sight

SHELLS: Final = ("sh", "bash", "ash", "dash")
Program = Callable[[Sight, Sequence[str]], Output]


def marked(sight: Sight) -> str:
    """The line on standard error that goes with every answer."""
    return (
        f"simulated: node {sight.node} executes nothing; this is what {sight.container} would see\n"
    )


def run(sight: Sight, command: Sequence[str]) -> Output:
    """What a command prints in a container."""
    program = PurePosixPath(command[0]).name
    words = command[1:]
    if program in SHELLS:
        return _one_line(sight, program, words)
    found = PROGRAMS.get(program)
    if found is None:
        known = ", ".join(sorted(PROGRAMS))
        return not_found(
            command[0], f"not found: node {sight.node} is simulated and knows only {known}"
        )
    return found(sight, words)


def _one_line(sight: Sight, shell: str, words: Sequence[str]) -> Output:
    """`sh -c 'nvidia-smi -L'`: one command, without anything that only a shell understands."""
    if len(words) != 2 or words[0] not in ("-c", "-lc"):
        return Output(
            error=f"{shell}: simulated are `{shell} -c COMMAND` and, with -it, a prompt\n", code=2
        )
    try:
        inner = shlex.split(words[1])
    except ValueError as error:
        return Output(error=f"{shell}: {error}\n", code=2)
    return run(sight, inner) if inner else Output()


def _env(sight: Sight, words: Sequence[str]) -> Output:
    if words:
        return Output(error="env: simulated without arguments only\n", code=1)
    return _printed(sight)


def _printenv(sight: Sight, words: Sequence[str]) -> Output:
    if not words:
        return _printed(sight)
    known = sight.environment
    text = "".join(f"{known[name]}\n" for name in words if name in known)
    return Output(text, _left_out(sight, words), int(not all(name in known for name in words)))


def _printed(sight: Sight) -> Output:
    text = "".join(f"{name}={value}\n" for name, value in sight.environment.items())
    return Output(text, _left_out(sight, sight.unknown_variables))


def _left_out(sight: Sight, asked: Sequence[str]) -> str:
    names = [name for name in sight.unknown_variables if name in asked]
    if not names:
        return ""
    return f"simulated: not resolved, because they come from other objects: {', '.join(names)}\n"


def _hostname(sight: Sight, words: Sequence[str]) -> Output:
    if words:
        return Output(error="hostname: simulated without arguments only\n", code=1)
    return Output(f"{sight.pod}\n")


def _ls(sight: Sight, words: Sequence[str]) -> Output:
    """Of /dev and what is below it."""
    paths = [word for word in words if not word.startswith("-")]
    if len(paths) != 1 or not f"{paths[0]}/".startswith("/dev/"):
        return Output(error="ls: simulated for /dev and below\n", code=2)
    nodes = sight.device_nodes
    path = paths[0].rstrip("/")
    if path in nodes:
        return Output(f"{path}\n")
    below = {
        node.removeprefix(f"{path}/").partition("/")[0]
        for node in nodes
        if node.startswith(f"{path}/")
    }
    if not below:
        return Output(error=f"ls: cannot access '{path}': No such file or directory\n", code=2)
    return Output("".join(f"{name}\n" for name in sorted(below)))


PROGRAMS: Final[Mapping[str, Program]] = {
    nvidia.PROGRAM: nvidia.run,
    ROCM: rocm_smi,
    HABANA: hl_smi,
    "env": _env,
    "printenv": _printenv,
    "hostname": _hostname,
    "ls": _ls,
}
