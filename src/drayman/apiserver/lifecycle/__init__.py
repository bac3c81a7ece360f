"""What happens to objects because of others: garbage collection by owner, and the end of namespaces."""
