"""What would become of manifests in a cluster, before anything is submitted."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import asdict

from drayman.explain.answer import Explanation
from drayman.explain.pod import explain_pod
from drayman.placement.world import World
from drayman.questions.errors import NothingToPlanError, QuestionError
from drayman.questions.manifests import Manifests, read_manifests
from drayman.questions.queues.planned import PlannedQueued, queue_plan
from drayman.reasons.wording import and_list
from drayman.simulate.plan_report import PlanReport
from drayman.simulate.planning import Planning, TooManyPodsError


class PlanAnswer(PlanReport):
    """A plan, and what else there is to say about the manifests."""

    explanations: tuple[Explanation, ...] = ()
    """On demand, full explanations of what would wait, for one pod of each workload and reason."""
    ignored: tuple[str, ...] = ()
    """Kinds of objects that may result in pods, but not now, or not in a way that is known here."""
    queued: tuple[PlannedQueued, ...] = ()
    """What quota says of those that name a queue."""
    warnings: tuple[str, ...] = ()
    """What drivers will refuse of what the manifests say and none of the pods asks for, with file, line, object and field."""


async def plan(
    world: World,
    inputs: Iterable[tuple[str, bytes]],
    namespace: str,
    *,
    times: int = 1,
    pending_first: bool = True,
    with_explanations: bool = False,
) -> PlanAnswer:
    """Where the pods of files, given as names and bytes, would go. Raises QuestionError.

    With `pending_first`, pods that wait in the cluster already take their turns too; with `with_explanations`, the answer
    explains what would wait.
    """
    files = list(inputs)
    manifests = await read_manifests(files, world, namespace)
    if not manifests.wanted.workloads:
        raise _nothing_to_plan(manifests, [name for name, _ in files])
    copies = list(manifests.wanted.copies(times))
    quota = queue_plan(world, copies)
    started = copies if quota is None else quota.copies()
    planning = Planning(world, manifests.wanted, times, started)
    try:
        report = planning.carried_out(pending_first=pending_first)
    except TooManyPodsError as error:
        raise QuestionError(str(error)) from error
    explanations = _explanations(planning) if with_explanations else ()
    if quota is not None:
        report = quota.report(report)
    return PlanAnswer(
        **asdict(report),
        explanations=explanations,
        ignored=manifests.ignored,
        queued=() if quota is None else tuple(quota.answers()),
        warnings=_untold(manifests, report),
    )


def _untold(manifests: Manifests, report: PlanReport) -> tuple[str, ...]:
    """The warnings that no pod of the plan has."""
    told = {
        (namespace, text.partition(": ")[0])
        for pod in report.pods
        for text in pod.refused_configs
        for namespace in (pod.namespace, "")
    }
    return tuple(
        str(each.finding) for each in manifests.warnings if (each.namespace, each.owner) not in told
    )


def _nothing_to_plan(manifests: Manifests, files: list[str]) -> NothingToPlanError:
    objects = manifests.wanted.objects
    claims = [f"ResourceClaim {claim.metadata.name}" for claim in objects.claims]
    claims += [f"ResourceClaimTemplate {each.metadata.name}" for each in objects.templates]
    found = f", only {and_list(claims)}" if claims else ""
    ignored = f"; not planned: {', '.join(manifests.ignored)}" if manifests.ignored else ""
    return NothingToPlanError(
        f"{', '.join(files)}: nothing there would create pods now{found}{ignored}",
        has_claims=bool(claims),
        warnings=tuple(str(each.finding) for each in manifests.warnings),
    )


def _explanations(planning: Planning) -> tuple[Explanation, ...]:
    world, planned, pods = planning.afterwards()
    return tuple(explain_pod(world, pod, planned=planned) for pod in pods)
