"""Volumes: which volume a claim gets, and what is made where there is none."""
