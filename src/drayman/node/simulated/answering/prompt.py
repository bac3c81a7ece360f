"""A prompt in a simulated container: lines are read, edited and answered as a terminal and a shell would."""

from __future__ import annotations

from typing import Final

from drayman.node.simulated.answering.programs import marked, run_line
from drayman.node.simulated.answering.sight import Sight
from drayman.node.streams.model import Streams

PROMPT: Final = "# "
MOST_LINE: Final = 4096
_INTERRUPT: Final = "\x03"
_END: Final = "\x04"
_ERASE: Final = ("\x08", "\x7f")
_ESCAPE: Final = "\x1b"


class LineEditor:
    """Turns keys into lines, and says what the terminal has to show for them. Keys that move are left out."""

    def __init__(self, *, echoes: bool) -> None:
        """`echoes`: the client has a terminal, which shows nothing by itself."""
        self._echoes = echoes
        self._line = ""
        self._is_escaped = False

    def keys(self, text: str) -> tuple[str, list[str], bool]:
        """What to show, the lines that are complete, and whether the input ends here."""
        shown: list[str] = []
        lines: list[str] = []
        for key in text:
            if self._is_escaped:  # ESC [ ... letter
                self._is_escaped = not (key.isalpha() or key == "~")
            elif key == _ESCAPE:
                self._is_escaped = True
            elif key in "\r\n":
                shown.append("\r\n")
                lines.append(self._line)
                self._line = ""
            elif key == _INTERRUPT:
                shown.append("^C\r\n")
                lines.append("")
                self._line = ""
            elif key == _END and not self._line:
                return self._visible(shown), lines, True
            elif key in _ERASE:
                shown.append("\b \b" if self._line else "")
                self._line = self._line[:-1]
            elif key.isprintable() and len(self._line) < MOST_LINE:
                shown.append(key)
                self._line += key
        return self._visible(shown), lines, False

    def _visible(self, shown: list[str]) -> str:
        return "".join(shown) if self._echoes else ""


async def converse(sight: Sight, streams: Streams, *, tty: bool) -> int:
    """Answer line by line until the input ends; the exit code of the last command."""
    editor = LineEditor(echoes=tty)
    newline = "\r\n" if tty else "\n"
    prompt = PROMPT if tty else ""
    code = 0
    await streams.write_error(marked(sight).replace("\n", newline).encode())
    await streams.write(prompt.encode())
    while data := await streams.read():
        shown, lines, is_over = editor.keys(data.decode("utf-8", "replace"))
        await streams.write(shown.encode())
        for line in lines:
            answer = run_line(sight, line, last=code)
            code = answer.output.code
            await streams.write(answer.output.text.replace("\n", newline).encode())
            await streams.write_error(answer.output.error.replace("\n", newline).encode())
            if answer.is_exit:
                return code
            await streams.write(prompt.encode())
        if is_over:
            await streams.write(newline.encode())
            break
    return code
