"""A second opinion on allocation: rules, exhaustive searches and random problems that share no code with the product.

Everything here works on problems as plain JSON objects (slices, classes, claims, what is in use) and is written to be obviously
right rather than fast. The product's allocator and inventory are compared with it; neither imports the other.
"""

import pytest

pytest.register_assert_rewrite("oracle.cases")
