"""A stdio server that prints its environment and its arguments, and dies."""

import os
import sys

for name, value in os.environ.items():
    print(f"{name}={value}", file=sys.stderr)
print(" ".join(sys.argv), file=sys.stderr)
sys.exit(4)
