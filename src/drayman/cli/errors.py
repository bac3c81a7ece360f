"""What ends a command early.

Exit statuses: 0 for success, 1 for input that is wrong, 2 for a wrong command line (click's own), 70 for an internal error, 130 and 141 for
an interrupt and a closed pipe, as in shells. Commands that answer a question with 0 or 1 end with 2 for any error: see `no_answer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final

import click

from drayman.printable import printable
from drayman.questions.errors import (
    MayNotListError,
    NoClusterMeantError,
    NoSuchObjectError,
    NothingRunsError,
    NothingToPlanError,
    QuestionError,
)

NO_ANSWER: Final = 2
INTERNAL_ERROR: Final = 70
INTERRUPTED: Final = 130
CLOSED_PIPE: Final = 141

_START_ONE: Final = (
    "start one with: drayman up --profile dgx-h100=1 (`drayman profiles` lists others),"
    " or name one with --kubeconfig"
)
LONGEST_MESSAGE: Final = 4_000
"""Characters of a message that are shown. The error may be about a name of a hundred megabytes."""


def reason(error: OSError) -> str:
    """What the system says, worded for the middle of a sentence."""
    return (error.strerror or str(error)).lower()


class UserError(click.ClickException):
    """Something the user gave is wrong. The message is one line that names file, object and field."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message to standard error."""
        message = self.message
        if len(message) > LONGEST_MESSAGE:
            message = f"{message[:LONGEST_MESSAGE]}..."
        click.echo(f"error: {printable(message)}", file=file, err=True)


def in_options(error: QuestionError) -> str:
    """Why there is no answer, with what to do about it on the command line."""
    match error:
        case NoClusterMeantError():
            return f"{error}: {_START_ONE}"
        case NothingRunsError():
            return f"{error}; {_START_ONE}"
        case NothingToPlanError(has_claims=True):
            return error.with_advice("; `drayman capacity -f FILE` says how often a claim fits")
        case MayNotListError(any_namespace=True):
            return error.with_advice("; name another with --namespace")
        case MayNotListError(subject=subject):
            return error.with_advice(f"; {_granting(subject)}")
        case NoSuchObjectError(found_in=str(where)) if where:
            return f"{error}: name it with --namespace"
        case NoSuchObjectError(is_elsewhere=True):
            return f"{error}; name another with --namespace"
    return str(error)


def _granting(subject: str) -> str:
    """How an administrator grants all that questions read."""
    from shlex import quote

    from drayman.cluster.rights import READER

    user = subject or "--user=NAME"
    name = f"{READER}:{user.partition('=')[2]}"
    return (
        f"an administrator grants it with `kubectl create clusterrolebinding {quote(name)}"
        f" --clusterrole={READER} {quote(user)}` (`drayman explain --print-rbac | kubectl apply -f -` creates that role)"
    )


class NoAnswerError(UserError):
    """Something is wrong where another exit status would be an answer."""

    exit_code = NO_ANSWER


@contextmanager
def no_answer() -> Iterator[None]:
    """Any error in here ends the command with 2. Decorates commands for which 1 is an answer."""
    try:
        yield
    except UserError as error:
        raise NoAnswerError(error.message) from error
    except QuestionError as error:
        raise NoAnswerError(in_options(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise NoAnswerError(f"output cannot be written: {reason(error)}") from error
    except MemoryError as error:
        raise NoAnswerError("there is not enough memory for this input") from error
