"""`drayman top`: devices, claims and pools as lines of a table, as `kubectl top` and `kubectl get` print them."""
