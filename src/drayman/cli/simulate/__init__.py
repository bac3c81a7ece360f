"""`drayman simulate`."""
