"""Commands about runs refuse arguments that do not belong together."""
