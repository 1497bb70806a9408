"""The Moorage plugin {{ cookiecutter.name }}."""
