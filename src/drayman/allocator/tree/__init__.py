"""The search tree: what has been placed so far, and the depth-first walk over what could be placed next."""
