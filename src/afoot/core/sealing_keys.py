"""`SealingKeys` are the keys that open sealed strings, and say which one seals at a time."""

from msgspec import Struct


class SealingKey(Struct, frozen=True):
    """A key that seals what clients keep. Its id stands in front of what it sealed; "" stands for no id."""

    id: str
    secret: bytes
    seals_from: float = 0.0  # before, other gateways of a cluster may not know it yet


class SealingKeys(Struct, frozen=True):
    """The keys that open, in any order. There is at least one."""

    keys: tuple[SealingKey, ...]

    def sealing(self, now: float) -> SealingKey:
        """The newest key that may seal."""
        ready = [one for one in self.keys if one.seals_from <= now]
        if ready:
            return max(ready, key=lambda one: one.seals_from)
        return min(self.keys, key=lambda one: one.seals_from)

    def find(self, id: str) -> SealingKey | None:
        """The key with this id; None if it is unknown."""
        return next((one for one in self.keys if one.id == id), None)
