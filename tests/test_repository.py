"""The repository around the code keeps what it promises."""

from __future__ import annotations

import ast
import gzip
import re
import tomllib
from pathlib import Path

import drayman

ROOT = Path(__file__).parent.parent
TEXT_SUFFIXES = {".py", ".md", ".toml", ".yaml", ".lock", ".gz", ""}


def text_files() -> list[Path]:
    """Every text file of the project, compressed ones included, without caches and environments."""
    folders = ["src", "tests", "benchmarks", "docs", "examples", ".ci"]
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    top = list(ROOT.glob("*"))
    return [
        path
        for path in (*inside, *top)
        if path.is_file() and path.suffix in TEXT_SUFFIXES and "__pycache__" not in path.parts
    ]


def content(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def test_lock_pins_every_package_by_hash_and_names_no_address() -> None:
    """The lock installs from any index, and only what was locked."""
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    assert not re.search(r"^-", lock, flags=re.MULTILINE), "options such as --index-url"
    packages = re.findall(r"^([A-Za-z0-9._-]+)(==\S+)?", lock, flags=re.MULTILINE)
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock):
        if not block.startswith("#"):
            assert "==" in block.splitlines()[0]
            assert "--hash=sha256:" in block
    assert {"hatchling", "editables"} <= {name for name, _ in packages}


def test_lock_covers_everything_that_is_asked_for() -> None:
    """Each dependency of the project and of its development is in the lock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    lock = (ROOT / "requirements.lock").read_text()
    locked = {
        name.lower() for name in re.findall(r"^([A-Za-z0-9._-]+)==", lock, flags=re.MULTILINE)
    }
    assert {re.split(r"[<>=!~]", each)[0].lower() for each in wanted} <= locked


def test_no_file_names_a_machine() -> None:
    """Paths of one machine and hosts of one registry have no place in a repository."""
    absolute = re.compile(r"(?<![\w.$])/(?:home|root|work|tmp|opt)/[a-z]")
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in text_files()
        if path.name != Path(__file__).name
        for match in [absolute.search(content(path))]
        if match
    ]
    assert found == []


def test_modules_say_why_they_exist() -> None:
    """Every module with code opens with a docstring."""
    sources = {path: path.read_text() for path in (ROOT / "src").rglob("*.py")}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    silent = [path for path, tree in trees.items() if tree.body and not ast.get_docstring(tree)]
    assert silent == []


def test_documents_link_to_files_that_exist() -> None:
    """A reader who follows a link arrives."""
    documents = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
    broken = [
        f"{document.name}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text())
        if not (document.parent / target).exists()
    ]
    assert broken == []


def test_version_is_a_release_number() -> None:
    """`drayman.__version__` is what the build takes the version from."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", drayman.__version__)
