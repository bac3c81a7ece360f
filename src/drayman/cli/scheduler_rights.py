"""The rights of `drayman scheduler`: as a manifest that grants them, and checked with the cluster before it begins."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from drayman.cli.errors import UserError
from drayman.cluster.rights import binding, missing_rights, role
from drayman.placement.schedulers import LEASE_NAMESPACE, OWN_SCHEDULER, lease_of
from drayman.scheduler.rights import RIGHTS, leading

if TYPE_CHECKING:
    from drayman.cluster import HttpClient

_log: Final = logging.getLogger(__name__)

NAME: Final = "drayman-scheduler"


def manifest(names: Iterable[str]) -> list[dict[str, Any]]:
    """A service account, and roles with exactly the rights of a scheduler that serves these names, bound to it.

    Each name has a role for its lease, so that granting another name later takes nothing away.
    """
    where = {"namespace": LEASE_NAMESPACE}
    subjects = [{"kind": "ServiceAccount", "name": NAME, **where}]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, **where}}
    documents = [
        account,
        role("ClusterRole", {"name": NAME}, RIGHTS),
        binding("ClusterRole", {"name": NAME}, subjects),
    ]
    for name in sorted(set(names)):
        own = {"name": lease_of(name), **where}
        documents += [role("Role", own, leading([name])), binding("Role", own, subjects)]
    return documents


async def require_rights(client: HttpClient, leads: Iterable[str]) -> None:
    """Raises UserError, which names what is missing, where the cluster does not let the user schedule, and lead for these names."""
    from drayman.cluster.errors import ForbiddenError, NotFoundError

    names = tuple(leads)
    wanted = (*RIGHTS, *leading(names)) if names else RIGHTS
    try:
        missing = await missing_rights(client, wanted)
    except (ForbiddenError, NotFoundError) as error:
        # A cluster may not disclose rights. Then what is missing shows in what is refused.
        _log.warning("cannot ask what a scheduler may do here: %s", error)
        return
    if missing:
        raise UserError(
            f"on {client.connection} the scheduler lacks the rights to {'; '.join(map(str, missing))}."
            f" `drayman scheduler --print-rbac{_options(names)} | kubectl apply -f -` grants all it needs to the service"
            f" account {NAME} in {LEASE_NAMESPACE}: run it as that one"
        )


def _options(names: Iterable[str]) -> str:
    """The options that give these names; none for the name that is the default."""
    others = sorted(names)
    if others == [OWN_SCHEDULER]:
        return ""
    return "".join(f" --scheduler-name {quote(name)}" for name in others)
