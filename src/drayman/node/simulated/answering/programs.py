"""The programs that a simulated container has. Each is a function of what the container sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from drayman.node.simulated.answering import nvidia
from drayman.node.simulated.answering.accelerators import HABANA, ROCM, hl_smi, rocm_smi
from drayman.node.simulated.answering.command_lines import LineError, commands_of
from drayman.node.simulated.answering.listing import ls, visible_paths
from drayman.node.simulated.answering.output import Output, not_found
from drayman.node.simulated.answering.sight import Sight

SHELLS: Final = ("sh", "bash", "ash", "dash")
EXIT: Final = "exit"
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
        return _shell(sight, program, words)
    found = PROGRAMS.get(program)
    if found is None:
        known = ", ".join(sorted((*PROGRAMS, *SHELLS)))
        return not_found(
            command[0],
            f"not found: node {sight.node} is simulated and knows only {known}, and {EXIT} in a shell",
        )
    return found(sight, words)


def _shell(sight: Sight, shell: str, words: Sequence[str]) -> Output:
    """`sh -c 'nvidia-smi -L; ls /dev'`."""
    if len(words) != 2 or words[0] not in ("-c", "-lc"):
        return Output(
            error=f"{shell}: simulated are `{shell} -c COMMAND` and, with -it, a prompt\n", code=2
        )
    return run_line(sight, words[1], shell=shell).output


@dataclass(frozen=True, slots=True)
class Answer:
    """What a line for a shell prints."""

    output: Output
    is_exit: bool = False
    """Whether the shell ends with it."""


def run_line(sight: Sight, line: str, *, shell: str = "sh", last: int = 0) -> Answer:
    """What the commands of a line print, one after the other. `last` is how the command before the line ended."""
    try:
        commands = commands_of(line)
    except LineError as error:
        return Answer(Output(error=f"{shell}: {error}\n", code=2))
    paths = visible_paths(sight)
    text = error_text = ""
    for command in commands:
        if command.is_conditional and last:
            continue
        words = [each for word in command.words for each in word.expanded(paths)]
        if words[0] == EXIT:
            return Answer(Output(text, error_text, _exit_code(words[1:], last)), is_exit=True)
        output = run(sight, words) if words[0] else not_found(shell, "'': not found")
        text, error_text, last = text + output.text, error_text + output.error, output.code
    return Answer(Output(text, error_text, last))


def _exit_code(words: Sequence[str], last: int) -> int:
    return int(words[0]) % 256 if words and words[0].isdigit() else last


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


PROGRAMS: Final[Mapping[str, Program]] = {
    nvidia.PROGRAM: nvidia.run,
    ROCM: rocm_smi,
    HABANA: hl_smi,
    "env": _env,
    "printenv": _printenv,
    "hostname": _hostname,
    "ls": ls,
}
