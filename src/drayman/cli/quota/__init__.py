"""`drayman quota`: questions about quota."""
