"""What can go wrong is found before anything computes: checks of a study and of the machine, and what is fetched beforehand."""
