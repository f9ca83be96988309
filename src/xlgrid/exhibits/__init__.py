"""Tables and figures: their schema, their data and their drawing."""
