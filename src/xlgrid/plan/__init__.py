"""The files that follow from a study, what each of them needs, and the cost estimate."""
