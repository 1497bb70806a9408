"""``python -m moorage``."""

from moorage.cli import main

if __name__ == "__main__":
    main()
