"""The report of a study, its status, its cost, and the export of its results."""
