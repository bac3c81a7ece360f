"""How long tests wait for what has to come.

Nobody waits that long where all is well. It is long so that a machine which has twenty things to do at a time is not taken for a
broken one.
"""

from __future__ import annotations

from typing import Final

PATIENCE_S: Final = 180.0
