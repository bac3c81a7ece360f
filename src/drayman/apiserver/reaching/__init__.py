"""The way from the API server to the nodes."""
