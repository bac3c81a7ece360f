"""The ways in which gangs are stated, one module each. `membership` says which of them counts for a pod."""
