"""What a call does: read, watch, create, update, patch or delete one object, or several in one transaction."""
