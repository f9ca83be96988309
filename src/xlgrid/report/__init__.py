"""The report, and the status of a study."""
