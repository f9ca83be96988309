"""`python -m xlgrid` is the command `xlgrid`."""

from xlgrid.cli import main

if __name__ == "__main__":
    main()
