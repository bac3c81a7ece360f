"""What every command has in common: help, version, exit statuses, no tracebacks."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import drayman
from drayman.cli import main as main_module
from drayman.cli.lazy import LazyGroup
from drayman.cli.main import COMMANDS, cli, run

Break = Callable[[BaseException], None]

START = [sys.executable, "-c", "from drayman.cli.main import main; main()"]


def drayman_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the real command line in a process of its own."""
    return subprocess.run(
        [*START, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_version_is_printed_by_a_real_process() -> None:
    """`drayman --version` names program and version."""
    process = drayman_process("--version")
    assert (process.returncode, process.stdout) == (0, f"drayman {drayman.__version__}\n")


def test_version_loads_nothing_that_is_slow_to_load() -> None:
    """Start-up stays quick because commands, rich and the engine are imported only when they are used."""
    code = (
        "import sys; from drayman.cli.main import run; run(['--version']);"
        "print(sorted({'rich', 'yaml', 'msgspec', 're2', 'drayman.api'} & set(sys.modules)))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments", [[], *([name] for name in COMMANDS)], ids=["drayman", *COMMANDS]
)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_has_examples_and_fits_80_columns(arguments: list[str], option: str) -> None:
    """Every command explains itself, with examples."""
    result = CliRunner().invoke(cli, [*arguments, option], prog_name="drayman")
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize("words", [[], ["top"], ["node"], ["device"], ["bench"]], ids=" ".join)
def test_lists_of_commands_are_whole_sentences(words: list[str]) -> None:
    """What a command does is told in its line of 80 columns, and not broken off."""
    listed = CliRunner().invoke(cli, [*words, "--help"], terminal_width=80).stdout
    lines = listed.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert lines
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["alocate"], "no command 'alocate'; did you mean allocate", id="command"),
        pytest.param(["device", "lst"], "no command 'lst'; did you mean list?", id="subcommand"),
        pytest.param(["top", "device"], "did you mean devices?", id="singular"),
        pytest.param(["map", "--matrx"], "Did you mean '--matrix'?", id="option"),
        pytest.param(
            ["--kubeconfig", "file", "map"],
            "Options of a command come after its name.",
            id="option before its command",
        ),
        pytest.param(["xyzzy"], "there is no command 'xyzzy'.", id="nothing like it"),
    ],
)
def test_a_mistyped_command_line_is_a_usage_error(words: list[str], message: str) -> None:
    """It exits 2 and names what is wrong, and what may have been meant."""
    process = drayman_process(*words)
    assert process.returncode == 2
    assert message in process.stderr
    assert "Traceback" not in process.stderr


def _broken_group(error: BaseException) -> click.Group:
    @click.command()
    def broken() -> None:
        raise error

    group = click.Group("drayman", params=main_module.cli.params, callback=main_module.cli.callback)
    group.add_command(broken, "broken")
    return group


@pytest.fixture
def break_with(monkeypatch: pytest.MonkeyPatch) -> Break:
    """Puts a command named `broken` in place of all others, which raises what it is told to."""

    def apply(error: BaseException) -> None:
        monkeypatch.setattr(main_module, "cli", _broken_group(error))

    return apply


def test_a_bug_of_ours_asks_to_be_reported(
    break_with: Break, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unexpected exception exits 70 with a short message and no traceback."""
    break_with(ZeroDivisionError("by zero"))
    assert run(["broken"]) == 70
    captured = capsys.readouterr()
    assert "internal error: ZeroDivisionError: by zero" in captured.err
    assert "report" in captured.err
    assert "Traceback" not in captured.err


def test_debug_shows_the_traceback(break_with: Break) -> None:
    """With --debug the exception is let through."""
    break_with(ZeroDivisionError("by zero"))
    with pytest.raises(ZeroDivisionError):
        run(["--debug", "broken"])


def test_an_interrupt_exits_as_shells_expect(break_with: Break) -> None:
    """Control-C is no error of ours."""
    break_with(KeyboardInterrupt())
    assert run(["broken"]) == 130


def test_a_closed_pipe_is_silent() -> None:
    """Output that nobody reads any more, as in `drayman ... | head`, ends without a word."""
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run([*START, "demo"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (process.returncode, process.stderr) == (141, b"")


def test_a_closed_pipe_is_silent_for_plain_text_too(tmp_path: Path) -> None:
    """The status is the same whatever writes: it must not look like a verdict on the input."""
    manifest = tmp_path / "bad.yaml"
    manifest.write_text("a: 1\n")
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [*START, "validate", str(manifest)], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (process.returncode, process.stderr) == (141, b"")


@pytest.mark.parametrize("arguments", [["--version"], ["demo"], ["validate", "nowhere.yaml"]])
def test_a_full_disk_is_an_error(arguments: list[str]) -> None:
    """Output that cannot be written is said so on standard error, in one line."""
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [*START, *arguments], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert process.returncode == 1
    assert process.stderr == b"error: output cannot be written: no space left on device\n"


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", "<&-", "2>/dev/full"])
def test_missing_streams_are_no_fault_of_ours(redirection: str) -> None:
    """A closed or full stream changes no exit status."""
    command = f"{shlex.join([*START, 'validate', 'nowhere.yaml'])} {redirection}"
    process = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert process.returncode == 1
    assert b"Traceback" not in process.stderr
    assert b"internal error" not in process.stderr


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, number: int, status: int) -> None:
    """Stopped in the middle of its work, a command removes what it has written so far and complains to nobody."""
    source, target = tmp_path / "problems.jsonl", tmp_path / "out.jsonl"
    problem = b'{"name": "p", "node": {}, "claims": []}\n'
    source.write_bytes(problem * 30_000)
    target.write_bytes(b"old")
    process = subprocess.Popen(
        [*START, "allocate", "--problems", str(source), "--results", str(target)],
        stderr=subprocess.PIPE,
    )
    while len(os.listdir(tmp_path)) < 3:  # until the file beside the old result is there
        assert process.poll() is None
    process.send_signal(number)
    _, said = process.communicate()
    assert said.strip() == b""  # click ends the line that shows ^C
    assert process.returncode == status
    assert sorted(os.listdir(tmp_path)) == ["out.jsonl", "problems.jsonl"]
    assert target.read_bytes() == b"old"


def test_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    """Started to ignore the end of its terminal, a command goes on to the end."""
    source, target = tmp_path / "problems.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(b'{"name": "p", "node": {}, "claims": []}\n' * 3_000)
    process = subprocess.Popen(
        ["nohup", *START, "allocate", "--problems", str(source), "--results", str(target)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while len(os.listdir(tmp_path)) < 2:  # until it has begun to write
        assert process.poll() is None
    process.send_signal(signal.SIGHUP)
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert len(target.read_bytes().splitlines()) == 3_000


def test_memory_that_is_not_there_is_an_error(
    break_with: Break, capsys: pytest.CaptureFixture[str]
) -> None:
    """Running out of memory is the fault of the input, and said so."""
    break_with(MemoryError())
    assert run(["broken"]) == 1
    assert capsys.readouterr().err == "error: there is not enough memory for this input\n"


def test_lazy_group_lists_commands_without_importing_them() -> None:
    """Names are known at once; a command is imported when it is asked for."""
    group = LazyGroup("g", lazy={"b": "no.such.module:b", "a": "drayman.cli.main:cli"})
    context = click.Context(group)
    assert group.list_commands(context) == ["b", "a"]
    assert group.get_command(context, "a") is cli
    assert group.get_command(context, "c") is None
    with pytest.raises(ModuleNotFoundError):
        group.get_command(context, "b")


@pytest.mark.parametrize(
    ("number", "said"), [("SIGTERM", "SystemExit(143)"), ("SIGINT", "KeyboardInterrupt()")]
)
def test_a_signal_that_comes_where_exceptions_are_ignored_is_not_lost(
    number: str, said: str
) -> None:
    """Such as in the midst of an import. It ends what is being done, as it does elsewhere."""
    code = f"""
import signal, time, weakref
from drayman.cli.main import end_on_signals

class Lock:
    pass

end_on_signals()
lock = Lock()
watched = weakref.ref(lock, lambda _: signal.raise_signal(signal.{number}))
try:
    del lock
    time.sleep(10)
    print("went on")
except BaseException as error:
    print(repr(error))
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, f"{said}\n", "")
