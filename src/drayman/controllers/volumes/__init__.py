"""Volumes of an embedded cluster: claims are bound to volumes that exist, and volumes are simulated for classes that provision.

On a real cluster kube-controller-manager and the storage drivers do this, and nothing here runs.
"""

from __future__ import annotations

from typing import Final

from drayman.controllers.volumes.claims import VolumeClaimController
from drayman.controllers.volumes.ephemeral import EphemeralVolumeController
from drayman.controllers.volumes.volumes import VolumeController

CONTROLLERS: Final = (VolumeClaimController, VolumeController, EphemeralVolumeController)
"""All of them; each is made with a client and informers."""
