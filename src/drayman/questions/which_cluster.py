"""Which cluster is meant: one rule for every command and for the Python API.

The first of these that exists:

1. a kubeconfig that is named, and a context of that file or of those that kubectl reads;
2. a data directory that is named: the cluster that `drayman up` runs there, which has to run;
3. KUBECONFIG;
4. the cluster that `drayman up` runs on DRAYMAN_DATA_DIR, or in the user's state directory;
5. `~/.kube/config`, or the cluster of the pod that this runs in.

`kubectl drayman` means kubectl's cluster, so the fourth does not count there.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from drayman.questions.errors import NoClusterMeantError, NothingRunsError, QuestionError

if TYPE_CHECKING:
    from drayman.apiserver.instance.folder import Folder
    from drayman.cluster import HttpClient
    from drayman.cluster.kube.connection import Connection

EMBEDDED: Final = "the embedded cluster"
SILENT_S: Final = 30.0
"""Without a byte from the cluster for this long, the question fails instead of waiting longer."""


def connection_to(
    kubeconfig: Path | None = None,
    data_dir: Path | None = None,
    context: str = "",
    *,
    only_kubectl: bool = False,
) -> Connection:
    """How to reach the cluster that is meant. Raises QuestionError."""
    if kubeconfig is not None:
        return _found(kubeconfig, context)
    if data_dir is not None:
        folder = folder_of(data_dir)
        running = _embedded(folder, context)
        if running is None:
            raise NothingRunsError(f"nothing runs on {folder.path}")
        return running
    if context or os.environ.get("KUBECONFIG") or only_kubectl:
        return _found(None, context)
    return _embedded(folder_of(None), "") or _found(None, "")


def folder_of(data_dir: Path | None) -> Folder:
    """The data directory that is meant. The server's packages are not imported before one is needed."""
    from drayman.apiserver.instance.folder import Folder, default_folder

    return Folder((data_dir or default_folder()).absolute())


def interactive_client(connection: Connection) -> HttpClient:
    """A client for interactive use: a server that does not answer is asked once."""
    from drayman.cluster import HttpClient
    from drayman.cluster.kube.retries import FOR_PEOPLE
    from drayman.cluster.kube.transport import ClientLimits

    return HttpClient(connection, retries=FOR_PEOPLE, limits=ClientLimits(silent_seconds=SILENT_S))


def _embedded(folder: Folder, context: str) -> Connection | None:
    """The cluster that `drayman up` runs on a data directory, if it does."""
    record = folder.running()
    if record is None:
        return None
    return replace(_found(Path(record.kubeconfig), context), name=EMBEDDED)


def _found(kubeconfig: Path | None, context: str) -> Connection:
    """By the file that is named, or where kubectl looks."""
    from drayman.cluster.errors import ConfigurationError, NoClusterError
    from drayman.cluster.kube.locating import find_connection

    try:
        return find_connection(kubeconfig, context)
    except NoClusterError as error:
        where = folder_of(None).path
        raise NoClusterMeantError(f"{error}; nothing runs on {where} either") from error
    except ConfigurationError as error:
        raise QuestionError(str(error)) from error
