"""Gangs: pods that are placed together or not at all. What they are, how they are read, and which of their members there are."""
