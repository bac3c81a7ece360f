"""Shells complete what can be written after `drayman`."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from drayman.cli.main import COMMANDS, cli
from drayman.questions.subjects import KINDS

START = shlex.join([sys.executable, "-c", "from drayman.cli.main import main; main()"])


@pytest.fixture
def bash(tmp_path: Path) -> str:
    """The beginning of a script of bash in which completion is set up, as somebody does who reads the help."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    program = tmp_path / "drayman"
    program.write_text(f'#!/bin/sh\nexec {START} "$@"\n')
    program.chmod(0o755)
    return f"PATH={shlex.quote(str(tmp_path))}:$PATH; source <(drayman completion bash)\n"


def completed(bash: str, words: list[str], folder: Path) -> set[str]:
    """What bash offers for the last word."""
    script = (
        f"{bash}COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}\n"
        "_drayman_completion drayman\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    result = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, cwd=folder, check=True
    )
    return set(result.stdout.split())


CASES: dict[str, tuple[list[str], set[str]]] = {
    "commands": (["drayman", ""], set(COMMANDS)),
    "a command": (["drayman", "dev"], {"device"}),
    "subcommands": (["drayman", "device", ""], {"list", "taint", "untaint", "remove"}),
    "options": (["drayman", "map", "--ma"], {"--matrix"}),
    "values of an option": (["drayman", "map", "--sort-by", ""], {"name", "used", "free"}),
    "formats": (["drayman", "top", "pools", "-o", ""], {"json", "yaml"}),
    "profiles": (["drayman", "profiles", "dgx-h2"], {"dgx-h200", "dgx-h200-mig"}),
    "profiles to simulate": (["drayman", "up", "--profile", "gb"], {"gb200-nvl72"}),
    "kinds to explain": (["drayman", "explain", ""], set(KINDS)),
    "a kind to explain": (["drayman", "explain", "stat"], {"statefulset"}),
    "no kind where a name is due": (["drayman", "explain", "pod", ""], set()),
    "shells": (["drayman", "completion", ""], {"bash", "zsh", "fish"}),
}


@pytest.mark.parametrize("name", CASES)
def test_bash_completes(name: str, bash: str, tmp_path: Path) -> None:
    """By the script that `drayman completion bash` prints, in a real shell."""
    words, wanted = CASES[name]
    assert completed(bash, words, tmp_path) == wanted


@pytest.mark.parametrize(
    "words",
    [
        ["validate", ""],
        ["migrate", ""],
        ["plan", "-f", ""],
        ["capacity", "-f", ""],
        ["plan", "--snapshot", ""],
        ["cel", "--devices", ""],
        ["allocate", "--problems", ""],
        ["up", "--kubeconfig", ""],
    ],
    ids=" ".join,
)
def test_files_are_left_to_the_shell(words: list[str]) -> None:
    """It is told that a file is meant."""
    environment = {
        "_DRAYMAN_COMPLETE": "bash_complete",
        "COMP_WORDS": shlex.join(["drayman", *words]),
        "COMP_CWORD": str(len(words)),
    }
    result = CliRunner().invoke(cli, [], env=environment, prog_name="drayman")
    assert result.stdout.strip() == "file,"


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o nosort -F _drayman_completion drayman"),
        ("zsh", "#compdef drayman"),
        ("fish", "complete --no-files --command drayman"),
    ],
)
def test_every_shell_has_a_script(shell: str, line: str) -> None:
    """It names the command that it is for."""
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert line in result.stdout


def test_another_shell_is_a_usage_error() -> None:
    """The error names those that there are."""
    result = CliRunner().invoke(cli, ["completion", "csh"])
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.stderr
