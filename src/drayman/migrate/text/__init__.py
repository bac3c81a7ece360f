"""Changing the values in a manifest without disturbing the rest of its text.

Libraries that read YAML and write it again keep comments but reformat the text: indentation, quotes and line widths become theirs, and the
diff is mostly noise. Here the parser only says where each value is. Whatever a change does not touch is copied, so a manifest that needs no
change comes out byte for byte as it went in.
"""
