"""From bytes and a path to a call: routes, bodies, selectors."""
