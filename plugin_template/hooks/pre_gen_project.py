"""Refuses names that cannot become a distribution and a module."""

import re
import sys

NAME = "{{ cookiecutter.name }}"

if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", NAME):
    sys.exit("the name must be lower-case letters, digits and single dashes, and begin with a letter")
