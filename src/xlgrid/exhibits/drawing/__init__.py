"""The tools that the kinds of exhibits share: sheets of a table, parts of figures, the order of an axis, and comparisons."""
