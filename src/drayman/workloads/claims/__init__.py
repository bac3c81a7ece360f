"""ResourceClaims for the pods, and groups of pods, that ask for them by template, and the end of claims that are no longer used."""
