"""Why a question has no answer, in the words of the command line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from drayman.cli.errors import in_options, no_answer
from drayman.cli.lazy import LazyGroup
from drayman.questions.errors import (
    MayNotListError,
    NoClusterMeantError,
    NoSuchObjectError,
    NothingRunsError,
    QuestionError,
    RefusedList,
)

START = "start one with: drayman up --profile dgx-h100=1 (`drayman profiles` lists others), or name one with --kubeconfig"
LIST = "this needs the permission to list resourceclaims"
GRANT = (
    "an administrator grants it with `kubectl create clusterrolebinding drayman:reader:%s"
    " --clusterrole=drayman:reader --user=%s` (`drayman explain --print-rbac | kubectl apply -f -` creates that role)"
)

SENTENCES: dict[str, tuple[QuestionError, str]] = {
    "no cluster": (NoClusterMeantError("there is none"), f"there is none: {START}"),
    "nothing runs": (NothingRunsError("nothing runs on a"), f"nothing runs on a; {START}"),
    "another namespace would do": (
        MayNotListError([RefusedList("resourceclaims", "a", "no")], any_namespace=True),
        f"{LIST} in namespace a, which you do not have; name another with --namespace: no",
    ),
    "the whole cluster is needed": (
        MayNotListError([RefusedList("resourceclaims", None, "no")]),
        f"{LIST} in the whole cluster, which you do not have; {GRANT % ('NAME', 'NAME')}: no",
    ),
    "several are needed": (
        MayNotListError(
            [
                RefusedList("nodes", None, "no"),
                RefusedList("pods", "a", "no"),
                RefusedList("resourceslices", None, "no"),
            ],
            subject="--user=jane doe",
        ),
        "this needs the permission to list nodes, resourceslices in the whole cluster, and pods in namespace a,"
        f" which you do not have; {GRANT % ('jane doe', 'jane doe')}".replace(
            "drayman:reader:jane doe", "'drayman:reader:jane doe'"
        ).replace("--user=jane doe", "'--user=jane doe'")
        + ": no",
    ),
    "in another namespace": (
        NoSuchObjectError("there is no pod/a; there is one in b", found_in="b"),
        "there is no pod/a; there is one in b: name it with --namespace",
    ),
    "nothing like it": (
        NoSuchObjectError("there is no pod/a in b", is_elsewhere=True),
        "there is no pod/a in b; name another with --namespace",
    ),
    "a similar name": (
        NoSuchObjectError("there is no pod/a; did you mean b?"),
        "there is no pod/a; did you mean b?",
    ),
    "anything else": (QuestionError("too much"), "too much"),
}


@pytest.mark.parametrize(("error", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_what_to_do_is_said_in_options(error: QuestionError, sentence: str) -> None:
    """The error knows what is wrong; the command line adds which option mends it."""
    assert in_options(error) == sentence


@click.command()
def asks() -> None:
    raise QuestionError("too much")


@click.command()
@no_answer()
def answers() -> None:
    raise QuestionError("too much")


class Commands(LazyGroup):
    """The two commands above."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return {"asks": asks, "answers": answers}.get(cmd_name)


@pytest.mark.parametrize(("name", "status"), [("asks", 1), ("answers", 2)])
def test_a_question_without_an_answer_ends_the_command(name: str, status: int) -> None:
    """With 1, or with 2 where 1 would be an answer; never as an internal error."""
    commands = Commands(lazy=dict.fromkeys(("asks", "answers"), ""))
    result = CliRunner().invoke(commands, [name])
    assert (result.exit_code, result.stderr) == (status, "error: too much\n")
