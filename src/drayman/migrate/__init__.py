"""Manifests that ask for devices in earlier ways, rewritten for `resource.k8s.io/v1`.

Pure: texts go in, texts and remarks come out. `migrating` has the steps; `alpha2`, `versions`, `pods`, `gangs` and `leftovers` are
the rules, which work on decoded values; `text` applies their changes to the text.
"""

from drayman.migrate.migrating import migrate
from drayman.migrate.model import MigratedFile, Migration, Remark

__all__ = ["MigratedFile", "Migration", "Remark", "migrate"]
