"""`python -m genprobe`: the command line."""

from genprobe.commands import main

if __name__ == "__main__":
    main()
