"""The embedded worlds: facts, theories, and the natural and artificial languages that state them."""
