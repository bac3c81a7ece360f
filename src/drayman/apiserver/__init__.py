"""The Kubernetes API over an embedded store.

Everything below `http` works without sockets: a request is a value, the answer is a value or a stream of bytes. Objects are decoded
JSON in the version their kind is stored in (its hub). They become bytes once, when written, and reads pass those bytes on.
"""
