"""A group of commands that imports a command's module only when the command is used.

Importing all of them takes 0.10 s of CPU, which would slow down every command.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from drayman.cli.errors import UserError, in_options
from drayman.questions.errors import QuestionError


class LazyGroup(click.Group):
    """A group whose commands are named by `module:attribute`."""

    def __init__(self, *args: Any, lazy: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order they were declared: the ones to begin with come first."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        target = self._lazy.get(cmd_name)
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant. One that does not exist is refused with those that have a similar name."""
        name = args[0]
        is_option = not name[:1].isalnum()
        if name not in self._lazy and not is_option and not ctx.resilient_parsing:
            from drayman.api.near_names import did_you_mean

            meant = did_you_mean(name, self._lazy)
            raise click.UsageError(f"there is no command {name!r}{meant or '.'}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """If options of a command come before its name, as kubectl allows, say where they belong."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            text = f"{error.message} Options of a command come after its name."
            raise click.UsageError(text, ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and say in terms of its options why a question has no answer.

        A closed pipe is passed on without its errno, on which click would end the process itself.
        """
        try:
            return super().invoke(ctx)
        except QuestionError as error:
            raise UserError(in_options(error)) from error
        except BrokenPipeError as error:
            raise BrokenPipeError from error
