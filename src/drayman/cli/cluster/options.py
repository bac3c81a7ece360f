"""Options that the commands around an instance share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from drayman.apiserver.instance.folder import Folder, default_folder

F = TypeVar("F", bound=Callable[..., Any])


def data_dir_option(function: F) -> F:
    """`--data-dir`, with the user's state directory as default."""
    return click.option(
        "--data-dir",
        type=click.Path(path_type=Path),
        envvar="DRAYMAN_DATA_DIR",
        default=None,
        metavar="DIR",
        help="Where the cluster keeps its state. Default: drayman in the user's state directory.",
    )(function)


def folder_of(data_dir: Path | None) -> Folder:
    return Folder((data_dir or default_folder()).absolute())
