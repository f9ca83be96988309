"""Starting points of a study, task, method or language of one's own, which `xlgrid new` writes."""
