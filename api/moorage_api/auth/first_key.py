"""The admin key that a fresh gateway makes for itself (API-2)."""

from moorage.contract.errors import Conflict
from moorage.contract.stores import KeyRepository
from moorage_api.auth.authentication import ADMIN
from moorage_api.auth.keys import key_hash, new_key

NAME = "admin"


async def first_admin_key(keys: KeyRepository) -> str | None:
    """A new admin key where no key was ever made, else None.

    Revoking the last key makes no new one appear: `moorage keys create` does, for who may touch the database.
    """
    if await keys.list():
        return None
    key = new_key()
    try:
        await keys.create(name=NAME, user_id=ADMIN.user_id, roles=ADMIN.roles, key_hash=key_hash(key))
    except Conflict:
        # Another replica on the same database was faster, and has shown its key.
        return None
    return key
