"""Kueue's Configuration file, as far as this control loop follows it: what waits, how long pods may take, how quota is counted and shared.

A file that makes no sense is refused with its fields. Where it is from, and what becomes of changes, is the business of `source.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from drayman.api import codec
from drayman.api.documents import read_documents
from drayman.api.errors import DecodeError, DocumentError, SelectorError
from drayman.api.formats import label_value_problems
from drayman.api.labels import LabelMatcher, compile_selector
from drayman.api.meta import LabelSelector, LabelSelectorRequirement
from drayman.api.struct import ApiStruct, Json
from drayman.api.times import parse_duration
from drayman.api.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from drayman.quota.charging.mapping_rules import MappingsError, read_mappings
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.rules import Gates
from drayman.quota.settings import (
    EVICTION,
    FINAL_SHARE,
    IGNORE_UNDECLARED,
    INITIAL_SHARE,
    KUEUE_NAMESPACE,
    REPLACE,
    QuotaSettings,
    settings_of,
)
from drayman.workloads.dispatching.names import DEFAULT_ORIGIN
from drayman.workloads.queued.entering import Intake
from drayman.workloads.queued.kinds import FRAMEWORKS

GROUP: Final = "config.kueue.x-k8s.io"
VERSIONS: Final = ("v1beta1", "v1beta2")
_NEVER_MANAGED: Final = ("kube-system", KUEUE_NAMESPACE)
_FOREIGN: Final = (
    "kubeflow.org/trainjob",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "ray.io/rayservice",
    "sparkoperator.k8s.io/sparkapplication",
    "trainer.kubeflow.org/trainjob",
    "workload.codeflare.dev/appwrapper",
)
"""What Kueue can queue beside, and nothing here acts on. Its own default file lists some of them, so that they are accepted."""
_EXTENSION: Final = ("unchargedGracePeriod",)
_DISPATCHERS: Final = (
    "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
    "kueue.x-k8s.io/multikueue-dispatcher-incremental",
)
"""Kueue's own. Both are the same here: only clusters with room are asked, all of them at once."""
_MAY_PREEMPT: Final = ((), (FINAL_SHARE,), (INITIAL_SHARE,), (FINAL_SHARE, INITIAL_SHARE))


class ConfigurationFileError(Exception):
    """A file that cannot be used. The text names every field that is wrong."""


class _Integrations(ApiStruct):
    frameworks: tuple[str, ...] | None = None
    external_frameworks: tuple[str, ...] = ()
    label_keys_to_copy: tuple[str, ...] = ()


class _Retention(ApiStruct):
    after_finished: str | None = None
    after_deactivated_by_kueue: str | None = None


class _ObjectRetention(ApiStruct):
    workloads: _Retention = _Retention()


class _MultiKueue(ApiStruct):
    gc_interval: str = "1m"
    origin: str = DEFAULT_ORIGIN
    worker_lost_timeout: str = "15m"
    dispatcher_name: str = _DISPATCHERS[0]


class _Extension(ApiStruct):
    """What is not in Kueue's Configuration. Unlike there, a field that is not known is an error."""

    uncharged_grace_period: str = "1m"


class _File(ApiStruct):
    api_version: str = ""
    kind: str = ""
    namespace: str = KUEUE_NAMESPACE
    multi_kueue: _MultiKueue = _MultiKueue()
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: LabelSelector | None = None
    integrations: _Integrations = _Integrations()
    object_retention_policies: _ObjectRetention | None = None
    drayman: _Extension = _Extension()
    feature_gates: dict[str, bool] = field(default_factory=dict)


class Dispatching(Struct, frozen=True):
    """How work is handed to other clusters."""

    namespace: str = KUEUE_NAMESPACE
    """Where the Secrets with kubeconfigs are."""
    origin: str = DEFAULT_ORIGIN
    """What copies are labelled with."""
    lost_after_s: float = 900.0
    """How long a cluster may be silent before its work begins elsewhere."""
    collect_every_s: float = 60.0
    """How often copies that nobody needs are looked for."""


class QueueConfiguration(Struct, frozen=True):
    """What a Configuration comes to."""

    intake: Intake = Intake()
    copied_labels: tuple[str, ...] = ()
    quota: QuotaSettings = QuotaSettings()
    mappings: DeviceClassMappings = DeviceClassMappings()
    gates: Gates = Gates()
    """Which forms of device quota are on: all, unless they are switched off."""
    keep_finished_s: float | None = None
    """How long Workloads are kept that have ended; None: for ever."""
    keep_deactivated_s: float | None = None
    """How long Workloads are kept that were deactivated here, and then deleted with their owners; None: for ever."""
    uncharged_grace_s: float = 60.0
    """For how long pods may be on nodes that no quota covers, or that cost more than was admitted."""
    dispatching: Dispatching = Dispatching()

    @property
    def start_timeout_s(self) -> float:
        """How long pods may take to become ready."""
        return parse_duration(self.quota.wait_for_pods_ready.timeout)

    @property
    def recovery_timeout_s(self) -> float:
        """How long pods may take to be ready again; 0: for ever."""
        text = self.quota.wait_for_pods_ready.recovery_timeout
        return self.start_timeout_s if text is None else parse_duration(text)


def default_configuration() -> QueueConfiguration:
    """Without a file: everything that can wait does where it names a queue."""
    return QueueConfiguration(intake=Intake(namespaces=compile_selector(_default_selector())))


def _default_selector() -> LabelSelector:
    names = LabelSelectorRequirement(
        key="kubernetes.io/metadata.name", operator="NotIn", values=_NEVER_MANAGED
    )
    return LabelSelector(match_expressions=(names,))


def read_configuration(name: str, data: bytes) -> QueueConfiguration:
    """A file in YAML or JSON. Raises ConfigurationFileError."""
    try:
        documents = [document.value for document in read_documents(name, data)]
    except DocumentError as error:
        raise ConfigurationFileError(str(error)) from error
    if len(documents) != 1:
        raise ConfigurationFileError(
            f"{name}: has {len(documents)} objects, and not one Configuration"
        )
    return configuration_of(documents[0], name)


def _mappings_of(value: Json) -> tuple[DeviceClassMappings, list[FieldError]]:
    """The mappings of a Configuration, or what is wrong with them. Raises DecodeError."""
    try:
        return read_mappings(value, Gates.of_configuration(value)), []
    except MappingsError as error:
        return DeviceClassMappings(), list(error.errors)


def configuration_of(value: Json, name: str = "configuration") -> QueueConfiguration:
    """A decoded Configuration. Raises ConfigurationFileError."""
    try:
        given = codec.convert(_File, value)
        settings = settings_of(value)
        mappings, errors = _mappings_of(value)
    except DecodeError as error:
        raise ConfigurationFileError(f"{name}: {error}") from error
    errors += [*_file_errors(given), *_settings_errors(settings, given), *_flag_errors(value)]
    errors += _extension_errors(value)
    selector = given.managed_jobs_namespace_selector or _default_selector()
    matcher = LabelMatcher(())
    try:
        matcher = compile_selector(selector)
    except SelectorError as error:
        errors.append(invalid("managedJobsNamespaceSelector", "", str(error)))
    if errors:
        raise ConfigurationFileError(_listed(name, errors))
    retention = (given.object_retention_policies or _ObjectRetention()).workloads
    chosen = given.integrations.frameworks
    frameworks = frozenset(FRAMEWORKS) if chosen is None else frozenset(chosen) & set(FRAMEWORKS)
    return QueueConfiguration(
        intake=Intake(frameworks, given.manage_jobs_without_queue_name, matcher),
        copied_labels=given.integrations.label_keys_to_copy,
        quota=settings,
        mappings=mappings,
        gates=Gates.of_configuration(value),
        keep_finished_s=_seconds(retention.after_finished),
        keep_deactivated_s=_seconds(retention.after_deactivated_by_kueue),
        uncharged_grace_s=parse_duration(given.drayman.uncharged_grace_period),
        dispatching=Dispatching(
            given.namespace,
            given.multi_kueue.origin,
            parse_duration(given.multi_kueue.worker_lost_timeout),
            parse_duration(given.multi_kueue.gc_interval),
        ),
    )


def _listed(name: str, errors: tuple[FieldError, ...] | list[FieldError]) -> str:
    return "\n".join(f"{name}: {error}" for error in errors)


def _seconds(text: str | None) -> float | None:
    return None if text is None else parse_duration(text)


def _file_errors(given: _File) -> Iterator[FieldError]:
    group, _, version = given.api_version.rpartition("/")
    if group != GROUP or version not in VERSIONS:
        yield not_supported(
            "apiVersion", given.api_version, [f"{GROUP}/{each}" for each in VERSIONS]
        )
    if given.kind != "Configuration":
        yield not_supported("kind", given.kind, ["Configuration"])
    chosen = given.integrations.frameworks or ()
    for number, name in enumerate(chosen):
        if name not in (*FRAMEWORKS, *_FOREIGN):
            yield not_supported(f"integrations.frameworks[{number}]", name, FRAMEWORKS)
        if name in chosen[:number]:
            yield duplicate(f"integrations.frameworks[{number}]", name)
    retention = (given.object_retention_policies or _ObjectRetention()).workloads
    path = "objectRetentionPolicies.workloads"
    yield from _duration_errors(f"{path}.afterFinished", retention.after_finished)
    yield from _duration_errors(
        f"{path}.afterDeactivatedByKueue", retention.after_deactivated_by_kueue
    )
    yield from _duration_errors(
        "drayman.unchargedGracePeriod", given.drayman.uncharged_grace_period
    )
    yield from _dispatching_errors(given.multi_kueue)


def _dispatching_errors(given: _MultiKueue) -> Iterator[FieldError]:
    yield from _duration_errors("multiKueue.gcInterval", given.gc_interval)
    yield from _duration_errors("multiKueue.workerLostTimeout", given.worker_lost_timeout)
    if problems := label_value_problems(given.origin):
        yield invalid("multiKueue.origin", given.origin, "; ".join(problems))
    elif not given.origin:
        yield required("multiKueue.origin")
    if given.dispatcher_name not in _DISPATCHERS:
        yield not_supported("multiKueue.dispatcherName", given.dispatcher_name, _DISPATCHERS)


def _flag_errors(value: Json) -> Iterator[FieldError]:
    """Switches of v1beta1 that turn off what the presence of their part means in v1beta2."""
    if not str(value.get("apiVersion", "")).endswith("v1beta1"):
        return
    for name in ("waitForPodsReady", "fairSharing"):
        part = value.get(name)
        if isinstance(part, dict) and part.get("enable") is False:
            yield forbidden(f"{name}.enable", f"leave out {name} instead, as in v1beta2")


def _extension_errors(value: Json) -> Iterator[FieldError]:
    """Misspelt fields: otherwise the default would silently stay in force."""
    part = value.get("drayman")
    for name in part if isinstance(part, dict) else ():
        if name not in _EXTENSION:
            yield not_supported(f"drayman.{name}", name, _EXTENSION)


def _settings_errors(settings: QuotaSettings, given: _File) -> Iterator[FieldError]:
    waiting = settings.wait_for_pods_ready
    yield from _duration_errors("waitForPodsReady.timeout", waiting.timeout)
    yield from _duration_errors("waitForPodsReady.recoveryTimeout", waiting.recovery_timeout)
    again, path = waiting.requeuing_strategy, "waitForPodsReady.requeuingStrategy"
    if again.timestamp not in (EVICTION, "Creation"):
        yield not_supported(f"{path}.timestamp", again.timestamp, (EVICTION, "Creation"))
    for name, number in (
        ("backoffLimitCount", again.backoff_limit_count or 0),
        ("backoffBaseSeconds", again.backoff_base_seconds),
        ("backoffMaxSeconds", again.backoff_max_seconds),
    ):
        if number < 0:
            yield invalid(f"{path}.{name}", number, "must be greater than or equal to 0")
    fair = settings.fair_sharing
    if fair is not None and fair.preemption_strategies not in _MAY_PREEMPT:
        listed = list(fair.preemption_strategies)
        detail = f"must be {FINAL_SHARE}, {INITIAL_SHARE}, or both in this order"
        yield invalid("fairSharing.preemptionStrategies", listed, detail)
    yield from _resource_errors(settings)
    sampled = settings.admission_fair_sharing
    if sampled is not None:
        yield from _duration_errors(
            "admissionFairSharing.usageHalfLifeTime", sampled.usage_half_life_time
        )
        yield from _duration_errors(
            "admissionFairSharing.usageSamplingInterval", sampled.usage_sampling_interval
        )
        for name, weight in sampled.resource_weights.items():
            if weight < 0:
                yield invalid(
                    f"admissionFairSharing.resourceWeights[{name}]", weight, "must not be negative"
                )


def _resource_errors(settings: QuotaSettings) -> Iterator[FieldError]:
    resources = settings.resources
    strategies = ("BlockUndeclared", IGNORE_UNDECLARED)
    if resources.quota_check_strategy not in strategies:
        yield not_supported(
            "resources.quotaCheckStrategy", resources.quota_check_strategy, strategies
        )
    if resources.quota_check_strategy == IGNORE_UNDECLARED and resources.exclude_resource_prefixes:
        yield forbidden("resources.excludeResourcePrefixes", f"has no use with {IGNORE_UNDECLARED}")
    seen: set[str] = set()
    for number, rule in enumerate(resources.transformations):
        path = f"resources.transformations[{number}]"
        if not rule.input:
            yield required(f"{path}.input")
        elif rule.input in seen:
            yield duplicate(f"{path}.input", rule.input)
        seen.add(rule.input)
        if rule.strategy not in ("Retain", REPLACE):
            yield not_supported(f"{path}.strategy", rule.strategy, ("Retain", REPLACE))


def _duration_errors(path: str, text: str | None) -> Iterator[FieldError]:
    if text is None:
        return
    try:
        parse_duration(text)
    except ValueError as error:
        yield invalid(path, text, str(error))
