"""`drayman completion`: a script that lets a shell complete commands, options and what they take.

The scripts are click's. They run `drayman` itself, with a variable set that makes it print what may follow, so they need not be regenerated
when commands change. Names that only a cluster knows are not completed: a key press should not wait for an API server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_DRAYMAN_COMPLETE"

_EPILOG: Final = """\b
Examples:
  source <(drayman completion bash)     for this shell
  echo 'source <(drayman completion bash)' >> ~/.bashrc
  drayman completion zsh > _drayman     for a folder of fpath
  drayman completion fish > drayman.fish
"""


@click.command(short_help="Print the script that completes commands in a shell.", epilog=_EPILOG)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script with which a shell completes drayman's commands, options and values.

    \b
    bash   source <(drayman completion bash)    in ~/.bashrc
    zsh    source <(drayman completion zsh)     in ~/.zshrc, after compinit
    fish   drayman completion fish | source     in ~/.config/fish/config.fish

    Commands, options, values from a list, names of profiles and files are completed. Names of objects in a cluster are not.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None  # click has all three
    click.echo(found(ctx.find_root().command, {}, "drayman", _VARIABLE).source())


def profile_names(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The names of profiles, for the last item of a list of them."""
    from drayman.drivers.profiles import PROFILES

    before, comma, name = incomplete.rpartition(",")
    return completion_items(f"{before}{comma}{each}" for each in PROFILES if each.startswith(name))


def explained_kinds(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The kinds that can be explained. The name follows after a space, which kubectl accepts too."""
    from drayman.questions.subjects import KINDS

    if ctx.params.get(parameter.name or ""):
        return []
    return completion_items(kind for kind in KINDS if kind.startswith(incomplete))


def completion_items(values: Iterable[str]) -> list[CompletionItem]:
    """What a shell is to offer."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(value) for value in values]
