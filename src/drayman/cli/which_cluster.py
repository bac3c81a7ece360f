"""Which cluster is meant: the rule that every command goes by.

The first of these that there is:

1. `--kubeconfig`, and `--context` of that file or of those that kubectl reads;
2. `--data-dir`: the cluster that `drayman up` runs there, which has to run;
3. KUBECONFIG;
4. the cluster that `drayman up` runs on DRAYMAN_DATA_DIR, or in the user's state directory;
5. `~/.kube/config`, or the cluster of the pod that the command runs in.

`kubectl drayman` means kubectl's cluster, so there the fourth does not count.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from drayman.cli.cluster.options import folder_of
from drayman.cli.errors import UserError
from drayman.cli.settings import current_settings

if TYPE_CHECKING:
    from drayman.apiserver.instance.folder import Folder
    from drayman.cluster.kube.connection import Connection

EMBEDDED: Final = "the embedded cluster"
_START_ONE: Final = (
    "start one with: drayman up --profile dgx-h100=1 (`drayman profiles` lists others),"
    " or name one with --kubeconfig"
)


def connection_to(
    kubeconfig: Path | None = None, data_dir: Path | None = None, context: str = ""
) -> Connection:
    """How to reach the cluster that is meant. Raises UserError."""
    if kubeconfig is not None:
        return _found(kubeconfig, context)
    if data_dir is not None:
        folder = folder_of(data_dir)
        running = _embedded(folder, context)
        if running is None:
            raise UserError(f"nothing runs on {folder.path}; {_START_ONE}")
        return running
    if context or os.environ.get("KUBECONFIG") or current_settings().as_plugin:
        return _found(None, context)
    return _embedded(folder_of(None), "") or _found(None, "")


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
        raise UserError(f"{error}; nothing runs on {where} either: {_START_ONE}") from error
    except ConfigurationError as error:
        raise UserError(str(error)) from error
