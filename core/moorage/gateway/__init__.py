"""The gateway: everything that plugins contribute, composed and running (docs/decisions/0002)."""

from moorage.gateway.compose import Gateway, open_gateway, open_store

__all__ = ["Gateway", "open_gateway", "open_store"]
