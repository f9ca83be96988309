"""The schema of a study file, and checks that the schema alone cannot make."""
