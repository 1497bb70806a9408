"""``moorage demo``: the main job end to end, with a gateway that is killed in the middle."""
