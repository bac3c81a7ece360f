"""Who asks, and what they may list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

Person = Callable[[str, str], Path]
"""Makes the kubeconfig of somebody who may list some resources in their namespace and some in the whole cluster."""

OWN: Final = "pods,resourceclaims,resourceclaimtemplates,jobs,persistentvolumeclaims"
HARDWARE: Final = "nodes,resourceslices,deviceclasses"
