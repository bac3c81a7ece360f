"""What is to be explained, typed as for kubectl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from drayman.questions.errors import NamingError
from drayman.questions.subjects import parse_subject

if TYPE_CHECKING:
    from drayman.questions.subjects import Target


def subject_of(words: Sequence[str]) -> Target:
    """From `KIND/NAME` or `KIND NAME`. Raises UsageError."""
    if not words:
        raise click.UsageError("what is to be explained? Name it as KIND/NAME, or say --all.")
    if len(words) > 2 or (len(words) == 2 and "/" in words[0] + words[1]):
        raise click.UsageError("one object at a time, as KIND/NAME.")
    try:
        return parse_subject("/".join(words))
    except NamingError as error:
        raise click.UsageError(str(error)) from error
