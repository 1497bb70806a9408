"""``moorage serve`` and ``moorage keys``."""
