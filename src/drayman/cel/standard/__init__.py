"""The functions that belong to the language itself."""

from drayman.cel.standard.accessors import ACCESSORS
from drayman.cel.standard.arithmetic import ARITHMETIC
from drayman.cel.standard.collections import COLLECTIONS
from drayman.cel.standard.comparison import COMPARISON
from drayman.cel.standard.conversions import CONVERSIONS
from drayman.cel.standard.messages import MESSAGES
from drayman.cel.standard.optionals import OPTIONALS
from drayman.cel.standard.strings import STRINGS

STANDARD_LIBRARY = (ARITHMETIC, COMPARISON, COLLECTIONS, CONVERSIONS, STRINGS, ACCESSORS, MESSAGES)

__all__ = ["OPTIONALS", "STANDARD_LIBRARY"]
