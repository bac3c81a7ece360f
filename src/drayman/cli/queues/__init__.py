"""`drayman queues` and `drayman queue`."""
