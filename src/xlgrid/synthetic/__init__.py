"""Generated data: facts and theories about a small world, and the natural and artificial languages that state them."""
