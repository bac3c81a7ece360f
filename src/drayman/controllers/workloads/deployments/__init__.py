"""Deployments: one replica set for each template they had, and the move from one to the next."""

from __future__ import annotations

from drayman.controllers.workloads.deployments.controller import DeploymentController

__all__ = ["DeploymentController"]
