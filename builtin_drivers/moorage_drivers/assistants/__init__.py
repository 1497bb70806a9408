"""The built-in assistants, as LangGraph graphs (RUN-6)."""
