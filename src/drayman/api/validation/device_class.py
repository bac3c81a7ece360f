"""DeviceClass."""

from __future__ import annotations

from drayman.api.formats import label_key_problems, long_name_problems
from drayman.api.resource import DeviceClass, DeviceClassConfiguration
from drayman.api.validation.containers import Errors, check_list
from drayman.api.validation.field_errors import FieldError, invalid
from drayman.api.validation.metadata import check_metadata, check_metadata_update
from drayman.api.validation.selectors import (
    MAX_CONFIGS,
    SelectorChecker,
    check_configuration,
    check_selectors,
)


def validate(value: DeviceClass, selectors: SelectorChecker) -> list[FieldError]:
    """The errors of a class about to be created."""
    return [*_metadata(value), *_spec(value, None, selectors)]


def validate_update(
    new: DeviceClass, old: DeviceClass, selectors: SelectorChecker
) -> list[FieldError]:
    return [
        *_metadata(new),
        *check_metadata_update(new.metadata, old.metadata),
        *_spec(new, old, selectors),
    ]


def _metadata(value: DeviceClass) -> Errors:
    yield from check_metadata(
        value.metadata, namespaced=False, name_problems=long_name_problems, check_base=False
    )


def _spec(new: DeviceClass, old: DeviceClass | None, selectors: SelectorChecker) -> Errors:
    # A list that is exactly as before counts as stored; reordering it already makes every entry new.
    same_selectors = old is not None and new.spec.selectors == old.spec.selectors
    same_config = old is not None and new.spec.config == old.spec.config
    yield from check_selectors(
        new.spec.selectors, selectors, "spec.selectors", stored=same_selectors
    )

    def check_config(config: DeviceClassConfiguration, path: str) -> Errors:
        yield from check_configuration(config, path, stored=same_config)

    yield from check_list(new.spec.config, MAX_CONFIGS, check_config, "spec.config")
    name = new.spec.extended_resource_name
    if name is not None and not is_extended_resource_name(name):
        yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def is_extended_resource_name(name: str) -> bool:
    """Whether a resource is neither native to Kubernetes nor a quota for one."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not label_key_problems(f"requests.{name}")
