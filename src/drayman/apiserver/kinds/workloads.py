"""Rules shared by kinds that run pods: templates, selectors and counts of pods."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api import formats, labels
from drayman.api.codec import convert
from drayman.api.errors import SelectorError
from drayman.api.meta import LabelSelector
from drayman.api.struct import Json
from drayman.api.validation.field_errors import forbidden, invalid, not_supported, required
from drayman.apiserver.kinds.checks import label_selector, not_negative
from drayman.apiserver.kinds.own_annotations import (
    warnings_about_job,
    warnings_about_pod,
    warnings_about_size,
    warnings_about_workload,
)
from drayman.apiserver.kinds.pods.spec import check_template
from drayman.apiserver.kinds.pods.strategy import pod_warnings
from drayman.apiserver.kinds.reading import at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Context, Object

_TEMPLATE = "spec.template"


def check_numbers(obj: Json, path: str, *names: str) -> Errors:
    """Counts that are not negative."""
    for name in names:
        yield from not_negative(at(obj, name), f"{path}.{name}")


def selects(selector: Json, own: Mapping[str, str]) -> bool | None:
    """Whether a selector selects these labels; None if it is invalid. No selector selects nothing."""
    if selector is None:
        return False
    try:
        matcher = labels.compile_selector(convert(LabelSelector, selector))
    except SelectorError:
        return None
    return matcher.matches(own)


def check_selector(spec: Object, word: str, *, needed: bool = True) -> Errors:
    """A selector that is not empty and selects its own pods. `word` is upstream's name for the kind."""
    selector = spec.get("selector")
    if selector is None and needed:
        yield required("spec.selector")
    yield from label_selector(selector, "spec.selector")
    if selector is not None and not any(
        selector.get(name) for name in ("matchLabels", "matchExpressions")
    ):
        yield invalid("spec.selector", selector, f"empty selector is invalid for {word}")
    own = map_at(spec, "template", "metadata", "labels")
    match selects(selector, own):
        case None:
            if needed:
                yield invalid("spec.selector", selector, "invalid label selector")
        case False:
            detail = "`selector` does not match template `labels`"
            yield invalid(f"{_TEMPLATE}.metadata.labels", own, detail)


def check_running_template(spec: Object, word: str) -> Errors:
    """The template of pods that a controller keeps running."""
    yield from check_template(spec.get("template"), _TEMPLATE)
    policy = at(spec, "template", "spec", "restartPolicy")
    if policy != "Always":
        yield not_supported(f"{_TEMPLATE}.spec.restartPolicy", policy, ("Always",))
    if at(spec, "template", "spec", "activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {word} is not Supported"
        yield forbidden(f"{_TEMPLATE}.spec.activeDeadlineSeconds", detail)


def template_warnings(new: Object, old: Object | None, _context: Context) -> list[str]:
    """What in the template is probably a mistake, where it is new, and what belongs there and is not."""
    about_own = [*warnings_about_workload(new, old), *warnings_about_size(new, old)]
    return [*about_own, *_about_template(new, old)]


def job_warnings(new: Object, old: Object | None, _context: Context) -> list[str]:
    """The same for Jobs, whose own annotations count for their pods."""
    stated = map_at(new, "metadata", "annotations")
    about_template = _about_template(new, old, stated)
    return [*warnings_about_job(new, old), *about_template, *_about_name(new, old)]


def _about_template(new: Object, old: Object | None, of_job: Object | None = None) -> list[str]:
    template = map_at(new, "spec", "template")
    before = {} if old is None else map_at(old, "spec", "template")
    found: list[str] = []
    if old is None or at(before, "metadata") != at(template, "metadata"):
        metadata = map_at(template, "metadata")
        found += warnings_about_pod(metadata, f"{_TEMPLATE}.metadata", of_job or {})
    if old is None or at(before, "spec") != at(template, "spec"):
        found += pod_warnings(map_at(template, "spec"), f"{_TEMPLATE}.spec")
    return found


def named_template_warnings(new: Object, old: Object | None, context: Context) -> list[str]:
    """The same for kinds whose name becomes part of the names of pods, and so of their host names."""
    return [*template_warnings(new, old, context), *_about_name(new, old)]


def _about_name(new: Object, old: Object | None) -> list[str]:
    found: list[str] = []
    if old is None and (problems := formats.dns_label_problems(text_at(new, "metadata", "name"))):
        found.append(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(problems)}]"
        )
    return found
