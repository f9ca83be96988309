"""The starting points of a new study, task, method or language, which `xlgrid new` writes."""
