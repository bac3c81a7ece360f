"""StatefulSets: pods with names, and volumes, of their own."""
