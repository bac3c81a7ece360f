"""Containers as processes of this machine: their starts and ends, logs, and the commands and terminals of those who join them."""
