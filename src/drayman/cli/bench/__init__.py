"""`drayman bench`: how fast a scheduler is, measured from outside as Kubernetes' own benchmark does."""
