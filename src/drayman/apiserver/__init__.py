"""The Kubernetes API over an embedded store.

Everything below `http` is free of sockets: a request is a value, the answer is a value or a stream of bytes. Objects are decoded
JSON in the one version their kind is stored in (its hub); they become bytes once, when written, and reads hand those bytes on.
"""
