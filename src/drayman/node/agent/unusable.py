"""What a pod says that the API accepts, and that a node refuses: texts with a NUL character, which name no file, program or variable, and
paths of the machine that containers must not see.

It is looked for before anything is made for a container, so that its owner learns which field it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from drayman.api.codec import to_dict
from drayman.api.struct import Json
from drayman.node.agent.environment import SourceError, expanded
from drayman.node.agent.folders import Hidden
from drayman.node.agent.handlers import Handler
from drayman.node.agent.spec import Container, Volume

_Named = Iterator[tuple[str, str]]
"""Texts, each with the field that it is in."""


def refuse_unusable_volumes(volumes: Sequence[Volume]) -> None:
    """Raises SourceError."""
    for volume in volumes:
        _refuse_nul(f"volume {volume.name}", _all_texts("", to_dict(volume)))


def refuse_hidden_volumes(volumes: Sequence[Volume], hidden: Hidden) -> None:
    """Raises SourceError for a volume that would show the credentials of the cluster or the files of other pods."""
    for volume in volumes:
        if volume.host_path is not None and hidden.refuses(Path(volume.host_path.path)):
            raise SourceError(
                f"volume {volume.name}: hostPath.path {volume.host_path.path} has credentials of the cluster or files of pods,"
                " which containers on this node must not see"
            )


def refuse_unusable(
    container: Container, argv: Sequence[str], env: Mapping[str, str], added: Mapping[str, str]
) -> None:
    """Raises SourceError. `argv` is what is to be run, before variables are expanded; `env` are the variables that the pod says, and
    `added` those of its devices."""
    about = f"container {container.name}"
    _refuse_nul(about, _texts(container, env))
    if not expanded(argv[0], {**env, **added}):
        field = "command" if container.command or not container.args else "args"
        raise SourceError(f"{about}: {field}[0] is empty, and is to be the program that is run")


def _refuse_nul(about: str, texts: _Named) -> None:
    for field, text in texts:
        if "\0" in text:
            raise SourceError(f"{about}: {field} has a NUL character, which the system cannot take")


def _texts(container: Container, env: Mapping[str, str]) -> _Named:
    yield from _words("command", container.command)
    yield from _words("args", container.args)
    yield "workingDir", container.working_dir
    yield "terminationMessagePath", container.termination_message_path
    for number, mount in enumerate(container.volume_mounts):
        field = f"volumeMounts[{number}]"
        yield f"{field}.mountPath", mount.mount_path
        yield f"{field}.subPath", mount.sub_path
        yield f"{field}.subPathExpr", mount.sub_path_expr
    for name, value in env.items():  # also from a Secret, which may have anything
        yield "the name of a variable", name
        yield f"variable {name}", value
    handlers = {
        "startupProbe": container.startup_probe,
        "livenessProbe": container.liveness_probe,
        "readinessProbe": container.readiness_probe,
        "lifecycle.postStart": container.post_start,
        "lifecycle.preStop": container.pre_stop,
    }
    for field, handler in handlers.items():
        yield from _words(f"{field}.exec.command", _command_of(handler))


def _command_of(handler: Handler | None) -> Sequence[str]:
    return () if handler is None or handler.exec_ is None else handler.exec_.command


def _words(field: str, words: Sequence[str]) -> _Named:
    for number, word in enumerate(words):
        yield f"{field}[{number}]", word


def _all_texts(field: str, value: Json) -> _Named:
    """Every text in a value."""
    match value:
        case str():
            yield field, value
        case dict():
            for name, inner in value.items():
                yield from _all_texts(f"{field}.{name}" if field else name, inner)
        case list() | tuple():
            for number, inner in enumerate(value):
                yield from _all_texts(f"{field}[{number}]", inner)
