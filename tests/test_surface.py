"""The public surface of the package."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import drayman

EXPLAIN = import_module("drayman.explain")


@pytest.mark.parametrize("name", drayman.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """What the package lists can be had from it."""
    assert getattr(drayman, name) is not None


@pytest.mark.parametrize("name", EXPLAIN.__all__)
def test_every_public_name_of_explain_is_there(name: str) -> None:
    """The same for explanations."""
    assert getattr(EXPLAIN, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as it does with any module."""
    with pytest.raises(AttributeError, match="no attribute 'alocate'"):
        drayman.alocate  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'explain_pot'"):
        EXPLAIN.explain_pot  # noqa: B018


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    """The command line starts quickly because names are imported when first used."""
    code = "import sys, drayman; print(sorted(m for m in sys.modules if m.startswith('drayman.')))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "import drayman.explain",
        "from drayman.explain import explain_pod",
        "from drayman import Cluster",
    ],
)
def test_explain_is_the_function_whatever_was_imported_before(before: str) -> None:
    """A package below has the same name, and importing it does not take the place of the public name."""
    code = f"{before}\nfrom drayman import explain\nprint(type(explain).__name__)"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "function"
