"""The file with the configuration of admission plug-ins, as kube-apiserver takes it."""

from __future__ import annotations

from pathlib import Path

from drayman.api.documents import read_documents
from drayman.api.errors import DecodeError, DocumentError
from drayman.api.pod_security import PodSecuritySettings, settings_of
from drayman.cli.errors import UserError, reason


def read_pod_security(path: Path | None) -> PodSecuritySettings:
    """The Pod Security Standards of a cluster; without a file, those of Kubernetes. Raises UserError."""
    if path is None:
        return PodSecuritySettings()
    try:
        documents = [each.value for each in read_documents(str(path), path.read_bytes())]
    except OSError as error:
        raise UserError(f"{path}: {reason(error)}") from error
    except DocumentError as error:
        raise UserError(str(error)) from error
    if len(documents) != 1:
        raise UserError(f"{path}: has {len(documents)} objects, and not one configuration")
    try:
        settings, errors = settings_of(documents[0])
    except DecodeError as error:
        raise UserError(f"{path}: {error}") from error
    if errors:
        raise UserError("\n".join(f"{path}: {error}" for error in errors))
    return settings
