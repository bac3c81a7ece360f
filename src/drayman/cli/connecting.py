"""How a command talks to a cluster, and how it reports that it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import click

from drayman.cli.errors import UserError
from drayman.cli.options import data_dir_option
from drayman.cli.output import to_stdout
from drayman.cli.progress import waiting
from drayman.cli.settings import current_settings
from drayman.questions import which_cluster

if TYPE_CHECKING:
    from drayman.cluster import HttpClient
    from drayman.cluster.errors import UnreachableError
    from drayman.cluster.kube.connection import Connection

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Where:
    """The cluster to talk to, as the options of a command name it."""

    kubeconfig: Path | None = None
    data_dir: Path | None = None
    context: str = ""

    def connection(self) -> Connection:
        """How to reach the cluster that is meant, by the rule in `questions.which_cluster`. Raises QuestionError."""
        only_kubectl = current_settings().as_plugin
        return which_cluster.connection_to(
            self.kubeconfig, self.data_dir, self.context, only_kubectl=only_kubectl
        )


def cluster_options(function: Callable[..., T]) -> Callable[..., T]:
    """`--kubeconfig`, `--context` and `--data-dir`, together as `where`."""

    @wraps(function)
    def command(
        *args: Any, kubeconfig: Path | None, data_dir: Path | None, context: str, **options: Any
    ) -> T:
        return function(*args, where=Where(kubeconfig, data_dir, context), **options)

    named = click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The cluster to talk to. Default: that of KUBECONFIG, else the one that `drayman up` runs,"
        " else that of ~/.kube/config.",
    )
    context = click.option(
        "--context",
        default="",
        metavar="NAME",
        help="A context of the kubeconfig, in place of its current one.",
    )
    return named(context(data_dir_option(command)))


def namespace_option(function: F) -> F:
    """`--namespace`, as `namespace`, which is None where it is not given."""
    return click.option(
        "-n",
        "--namespace",
        metavar="NAME",
        help="Default: the namespace of the kubeconfig's context.",
    )(function)


def talk(where: Where, work: Callable[[HttpClient], Awaitable[T]]) -> T:
    """Do something with a client of the cluster that is meant. What the cluster refuses is shown to the user."""
    connection = where.connection()

    async def connected() -> T:
        async with client_of(connection) as client:
            return await work(client)

    with in_words(connection):
        return asyncio.run(connected())


@asynccontextmanager
async def client_of(connection: Connection) -> AsyncIterator[HttpClient]:
    """A client for interactive use; a long wait for the server is shown."""
    async with (
        which_cluster.interactive_client(connection) as client,
        waiting(f"waiting for {connection} to answer", client.answered),
    ):
        yield client


@asynccontextmanager
async def lasting_client_of(connection: Connection) -> AsyncIterator[HttpClient]:
    """A client for long-running work: a server that is unreachable or slow for a while is asked again."""
    from drayman.cluster import HttpClient

    async with HttpClient(connection) as client:
        yield client


@contextmanager
def in_words(connection: Connection) -> Iterator[None]:
    """What goes wrong with a cluster, as a sentence that names it and says what to do."""
    from drayman.cluster.errors import (
        ClusterError,
        ForbiddenError,
        UnauthorizedError,
        UnreachableError,
    )

    try:
        yield
    except UnauthorizedError as error:
        raise UserError(
            f"{connection} does not accept the credentials in the kubeconfig; they may have expired: {error}"
        ) from error
    except ForbiddenError as error:
        raise UserError(
            f"{connection} does not allow this: {error}; ask for the permission, or name another user's --context"
        ) from error
    except UnreachableError as error:
        raise UserError(
            f"cannot reach {connection}: {error.why}; {_advice(connection, error)}"
        ) from error
    except ClusterError as error:
        raise UserError(str(error)) from error


def announce(client: HttpClient) -> None:
    """Say which cluster was changed."""
    to_stdout(f"cluster: {client.connection}")


def _advice(connection: Connection, error: UnreachableError) -> str:
    from drayman.cluster.errors import (
        NoConnectionError,
        SilentError,
        UnknownHostError,
        UntrustedError,
    )

    another = "name another cluster with --kubeconfig or --context"
    if isinstance(error, UntrustedError):
        return (
            "the kubeconfig may be for a cluster that has been recreated, or for another one;"
            f" get a new one, or {another}"
        )
    if isinstance(error, UnknownHostError):
        return f"is the address right, and are you on its network? Or {another}"
    if isinstance(error, NoConnectionError):
        if urlsplit(connection.server).hostname in _LOOPBACK:
            return f"is it running? `drayman up` starts the embedded one; or {another}"
        return f"is it running, and are you on its network? Or {another}"
    if isinstance(error, SilentError):
        return f"it takes connections but is stuck or overloaded: try again later, or {another}"
    return f"is that a Kubernetes API server? Try again, or {another}"
