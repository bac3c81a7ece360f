"""What holds for a whole run of the command line. Commands find it in their click context."""

from __future__ import annotations

from dataclasses import dataclass

import click


@dataclass(slots=True)
class Settings:
    """The options of `drayman` itself, and how it was called."""

    debug: bool = False
    as_plugin: bool = False
    """Called by kubectl, whose cluster and namespace then apply."""


def current_settings() -> Settings:
    """The settings of the running command."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_object(Settings)
    return found or Settings()
