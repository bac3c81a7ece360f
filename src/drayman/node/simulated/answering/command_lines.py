"""A line for a shell, as far as it is simulated: plain commands, joined by `;` or `&&`, with quotes and patterns.

What needs more of a shell is refused as a whole, before anything of the line is answered: half an answer would look like all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import escape
from typing import Final

_JOINTS: Final = (";", "&&")
_ONLY: Final = "only plain commands, joined by ; or &&, are simulated"
_KEYWORDS: Final = frozenset(
    ("!", "case", "for", "function", "if", "select", "until", "while", "{", "[[")
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_TOKENS: Final = re.compile(
    r"""
      (?P<blank>   [^\S\n]+ | (?<![^\s;&]) \#[^\n]* )
    | (?P<joint>   && | ; | \n )
    | (?P<beyond>  \|\|? | <<? | >>? | & | [()] | \$\w* | ` )
    | (?P<single>  ' [^']* ' )
    | (?P<double>  " (?: [^"\\] | \\. )* " )
    | (?P<escaped> \\ . )
    | (?P<quote>   ['"] )
    | (?P<plain>   \\ | [^\s;&|<>()$`'"\\]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_QUOTES: Final = re.compile(r"\\.|[$`]\w*", re.DOTALL)
_ESCAPED: Final = re.compile(r'\\([$`"\\])|\\\n')


class LineError(Exception):
    """A line that a shell does not understand, or that is not simulated. The message says which."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command: as it is written without its quotes, and as a pattern, in which what was quoted stands for itself."""

    text: str
    pattern: str

    def expanded(self, paths: Sequence[str]) -> list[str]:
        """The paths that it fits, in their order; itself if there are none, as in a shell."""
        if self.pattern == escape(self.text):
            return [self.text]
        parts = self.pattern.split("/")
        return [path for path in paths if _fits(path.split("/"), parts)] or [self.text]


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a line."""

    words: tuple[Word, ...]
    is_conditional: bool
    """Whether it follows `&&`, and runs only if what is before it has succeeded."""


def _fits(names: Sequence[str], patterns: Sequence[str]) -> bool:
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def commands_of(line: str) -> list[Command]:
    """The commands of a line. Raises LineError."""
    commands: list[Command] = []
    joint = ""
    for words, next_joint in _parts(_tokens(line)):
        if words:
            _check(words[0])
            commands.append(Command(words, joint == "&&"))
        elif next_joint in _JOINTS:
            raise LineError(f'Syntax error: "{next_joint}" unexpected')
        elif joint == "&&" and not next_joint:
            raise LineError("Syntax error: nothing follows &&")
        if words or joint != "&&":  # what follows && may be on the next line
            joint = next_joint
    return commands


def _check(first: Word) -> None:
    if first.text in _KEYWORDS or _ASSIGNMENT.match(first.text):
        raise _beyond(first.text)


def _beyond(what: str) -> LineError:
    return LineError(f"{what} is not simulated: {_ONLY}")


def _parts(tokens: Iterable[Word | str]) -> Iterator[tuple[tuple[Word, ...], str]]:
    """The words of each command, with what comes after it: a joint, the end of a line, or nothing."""
    words: list[Word] = []
    for token in tokens:
        if isinstance(token, Word):
            words.append(token)
        else:
            yield tuple(words), token
            words = []
    yield tuple(words), ""


def _tokens(line: str) -> Iterator[Word | str]:
    """Words, and what joins commands. Raises LineError."""
    text = pattern = ""
    is_word = False
    for token in _TOKENS.finditer(line):
        kind, said = token.lastgroup, token[0]
        if kind in ("blank", "joint"):
            if is_word:
                yield Word(text, pattern)
            text, pattern, is_word = "", "", False
            if kind == "joint":
                yield said
            continue
        is_word = True
        if kind == "plain":
            text, pattern = text + said, pattern + said
        else:
            quoted = _quoted(kind, said)
            text, pattern = text + quoted, pattern + escape(quoted)
    if is_word:
        yield Word(text, pattern)


def _quoted(kind: str | None, said: str) -> str:
    """What stands for itself. Raises LineError."""
    match kind:
        case "single":
            return said[1:-1]
        case "escaped":
            return said[1:].removeprefix("\n")
        case "double":
            for found in _IN_QUOTES.findall(said):
                if not found.startswith("\\"):
                    raise _beyond(found)
            return _ESCAPED.sub(lambda each: each[1] or "", said[1:-1])
        case "quote":
            raise LineError("Syntax error: Unterminated quoted string")
        case _:
            raise _beyond(said)
