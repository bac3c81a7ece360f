"""Deployments: one replica set for each template they had, and the move from one to the next."""
