"""The devices of this node: which claims have them, how they are, and the drivers they belong to."""
