"""Moves that make room: which pods would have to go elsewhere so that one that waits fits, where they would go, and in which order."""
