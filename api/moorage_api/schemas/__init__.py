"""What requests and answers look like. Bodies are pydantic models, answers msgspec structs."""
