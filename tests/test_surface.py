"""The public surface of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import drayman
import drayman.explain


@pytest.mark.parametrize("name", drayman.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """What the package lists can be had from it."""
    assert getattr(drayman, name) is not None


@pytest.mark.parametrize("name", drayman.explain.__all__)
def test_every_public_name_of_explain_is_there(name: str) -> None:
    """The same for explanations."""
    assert getattr(drayman.explain, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as it does with any module."""
    with pytest.raises(AttributeError, match="no attribute 'alocate'"):
        drayman.alocate  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'explain_pot'"):
        drayman.explain.explain_pot  # noqa: B018


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    """The command line starts quickly because names are imported when first used."""
    code = "import sys, drayman; print(sorted(m for m in sys.modules if m.startswith('drayman.')))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"
