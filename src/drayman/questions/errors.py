"""Every exception of the `questions` package.

    QuestionError                 there is no answer
    ├── NoClusterMeantError       nothing says which cluster is meant
    ├── NothingRunsError          nothing runs on the data directory that was named
    ├── MayNotListError           the user may not list something without which there is no answer
    ├── NamingError               what was given does not name an object
    ├── NoSuchObjectError         the object that was named does not exist
    ├── NothingToPlanError        manifests without pods; says whether they have claims
    └── ManifestsError            something in manifests is wrong; carries a finding for each mistake

What a cluster itself refuses, or a cluster that does not answer, is a `cluster.errors.ClusterError`. Messages name the object and the
field; how to fix it with the options of a command is for that command to say, so the parts it needs for that are attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drayman.api.loading import LoadFinding


class QuestionError(Exception):
    """There is no answer; the message says why."""


class NoClusterMeantError(QuestionError):
    """Nothing says which cluster is meant."""


class NothingRunsError(QuestionError):
    """No embedded cluster runs on the data directory that was named."""


@dataclass(frozen=True, slots=True)
class RefusedList:
    """A list that the user may not read, in a namespace or, with None, in the whole cluster, and what the server says about that."""

    resource: str
    namespace: str | None
    refusal: str


class MayNotListError(QuestionError):
    """The user may not list something without which there is no answer.

    `refused` has all that is missing. `subject` is the user as an option of `kubectl create clusterrolebinding`, if known. `any_namespace`
    states whether another namespace would do as well.
    """

    def __init__(
        self,
        refused: Sequence[RefusedList],
        *,
        subject: str = "",
        any_namespace: bool = False,
    ) -> None:
        self.refused = tuple(refused)
        self.subject = subject
        self.any_namespace = any_namespace
        super().__init__(self.with_advice(""))

    def with_advice(self, advice: str) -> str:
        """The sentence with advice after what is missing, and then the server's message about the first list."""
        by_namespace: dict[str | None, list[str]] = {}
        for each in self.refused:
            by_namespace.setdefault(each.namespace, []).append(each.resource)
        parts = [
            f"{', '.join(resources)} {f'in namespace {where}' if where else 'in the whole cluster'}"
            for where, resources in by_namespace.items()
        ]
        said = f"this needs the permission to list {', and '.join(parts)}, which you do not have"
        return f"{said}{advice}: {self.refused[0].refusal}"


class NamingError(QuestionError):
    """What was given does not name an object."""


class NoSuchObjectError(QuestionError):
    """The object that was named does not exist.

    `found_in` is another namespace that has one of that name. `is_elsewhere` says that nothing in the namespace has a similar name, so the
    namespace may be wrong.
    """

    def __init__(self, message: str, *, found_in: str = "", is_elsewhere: bool = False) -> None:
        super().__init__(message)
        self.found_in = found_in
        self.is_elsewhere = is_elsewhere


def no_such_node(name: str, known: Iterable[str]) -> NoSuchObjectError:
    """The error for a node that does not exist, with the nearest names of those that do."""
    from drayman.api.near_names import (
        did_you_mean,  # this module is imported before anything is asked
    )

    meant = did_you_mean(name, known, "`kubectl get nodes`")
    return NoSuchObjectError(f"there is no node {name!r}{meant}")


class NothingToPlanError(QuestionError):
    """Manifests contain nothing that would create pods. `has_claims` says whether they have claims, which can be counted.

    `warnings` are about what is in the manifests nevertheless.
    """

    def __init__(self, message: str, *, has_claims: bool, warnings: tuple[str, ...] = ()) -> None:
        self.message = message
        self.has_claims = has_claims
        self.warnings = warnings
        super().__init__(self.with_advice(""))

    def with_advice(self, advice: str) -> str:
        """The sentence with advice after it, and then the warnings, each on its line."""
        return "\n".join((f"{self.message}{advice}", *self.warnings))


class ManifestsError(QuestionError):
    """Something in manifests is wrong."""

    def __init__(self, findings: tuple[LoadFinding, ...]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = findings
