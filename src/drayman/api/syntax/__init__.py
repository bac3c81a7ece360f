"""The one way from bytes to JSON values, for request bodies, manifests, problems, snapshots and profiles.

`values` has what texts are turned into and the bounds that hold for all of them, `json_text` and `yaml_text` read the two notations.
Each has two ways of reading. What people write in files is read strictly: a duplicate field is refused with its line. What clients
send is read as the API server reads it: such a field is reported, numbers stay as they were written, and errors have its words.
"""
