"""Which cluster a command talks to, and how it says that it cannot."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from drayman.cli.cluster.options import data_dir_option, folder_of
from drayman.cli.errors import UserError
from drayman.cli.process import without_system_certificates
from drayman.cli.settings import current_settings

if TYPE_CHECKING:
    from drayman.cluster import HttpClient

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def cluster_options(function: F) -> F:
    """`--kubeconfig` and `--data-dir`, as `kubeconfig` and `data_dir`."""
    named = click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The cluster to talk to. Default: the one that `drayman up` runs on the data directory, else KUBECONFIG.",
    )
    return named(data_dir_option(function))


def context_option(function: F) -> F:
    """`--context`, as `context`."""
    return click.option(
        "--context",
        default="",
        metavar="NAME",
        help="A context of the kubeconfig, in place of its current one.",
    )(function)


def namespace_option(function: F) -> F:
    """`--namespace`, as `namespace`, which is None where it is not given."""
    return click.option(
        "-n",
        "--namespace",
        metavar="NAME",
        help="Default: the namespace of the kubeconfig's context.",
    )(function)


def kubeconfig_of(kubeconfig: Path | None, data_dir: Path | None, context: str = "") -> Path | None:
    """The file that was named, or that of the running instance; None to look where kubectl does. Raises UserError."""
    if kubeconfig is not None:
        return kubeconfig
    if current_settings().as_plugin:
        data_dir = data_dir if _on_command_line("data_dir") else None
        if data_dir is None:
            return None
    elif context and data_dir is None:  # the file of an instance has but one
        return None
    folder = folder_of(data_dir)
    record = folder.running()
    if record is not None:
        return Path(record.kubeconfig)
    if data_dir is None and os.environ.get("KUBECONFIG"):
        return None
    raise UserError(
        f"nothing runs on {folder.path}; start it with: drayman up --profile NAME=COUNT,"
        " or name another cluster with --kubeconfig"
    )


def _on_command_line(option: str) -> bool:
    """Whether it was given there, and not in a variable of the environment that means `drayman` alone."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


def talk(
    kubeconfig: Path | None,
    data_dir: Path | None,
    work: Callable[[HttpClient], Awaitable[T]],
    *,
    context: str = "",
) -> T:
    """Do something with a client. What the cluster refuses is the user's to read."""
    with without_system_certificates():
        from drayman.cluster import HttpClient
    from drayman.cluster.errors import ClusterError, UnauthorizedError

    path = kubeconfig_of(kubeconfig, data_dir, context)

    async def connected() -> T:
        async with HttpClient.from_environment(path, context) as client:
            return await work(client)

    try:
        return asyncio.run(connected())
    except UnauthorizedError as error:
        raise UserError(
            f"the cluster does not accept the credentials in the kubeconfig; they may have expired: {error}"
        ) from error
    except ClusterError as error:
        raise UserError(str(error)) from error
