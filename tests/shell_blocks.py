"""The commands that documents tell people to run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted(ROOT.glob("docs/*.md"))]

_BLOCK = re.compile(r"^```sh\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
_PRINTS = re.compile(r"^\s*print\(.*\)  # (.+)$", flags=re.MULTILINE)
_INLINE = re.compile(r"`((?:drayman|kubectl) [^`]*)`")
_FILE = re.compile(r"[\w./*-]+\.(?:ya?ml|jsonl?|gz|py)")
_MADE_BY = re.compile(r"(?:>>?|--results)\s+(\S+)|^cp -r \S+ (\S+)")


@dataclass(frozen=True, slots=True)
class Named:
    """A file that a command names."""

    path: str
    is_made: bool
    """Whether the command makes it."""


def commands(document: Path) -> list[str]:
    """The commands of a document's shell blocks, in order, each in one line and without its comment."""
    found = []
    for block in _BLOCK.findall(document.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            command = re.sub(r"\s+# .*$", "", line).strip()
            if command:
                found.append(command)
    return found


def python_of(document: Path) -> str:
    """The Python blocks of a document as one program."""
    return "\n".join(_PYTHON.findall(document.read_text()))


def promised(program: str) -> list[str]:
    """What the comments of a program say that it prints."""
    return _PRINTS.findall(program)


def mentioned(document: Path) -> list[str]:
    """The commands in the middle of sentences."""
    return _INLINE.findall(document.read_text())


def files_of(command: str) -> Iterator[Named]:
    """The files that a command names."""
    made = {path for match in _MADE_BY.finditer(command) for path in match.groups() if path}
    words = shlex.split(command, comments=True)
    for word in words:
        for path in _FILE.findall(word) or ([word] if word in made or _is_folder(word) else []):
            yield Named(path, path in made)


def _is_folder(word: str) -> bool:
    return word.endswith("/") and not word.startswith("-")


def is_there(path: str) -> bool:
    """Whether the repository has a file, or files that a pattern matches."""
    return bool(glob(path, root_dir=ROOT))
