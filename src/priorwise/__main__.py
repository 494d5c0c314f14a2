"""``python -m priorwise``."""

from priorwise.cli import main

if __name__ == "__main__":
    main()
