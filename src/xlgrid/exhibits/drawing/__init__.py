"""Tools that the kinds of exhibits share: sheets of tables, parts of figures, the order of an axis, and comparisons."""
