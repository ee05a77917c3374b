"""How much an object holds on to: what lives through thousands of pictures of the world must not grow with them."""

from __future__ import annotations

import gc
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

_OUTSIDE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def held_by(*roots: object) -> int:
    """How many objects can be reached from these, code aside."""
    found, ahead = {id(root) for root in roots}, list(roots)
    while ahead:
        for each in gc.get_referents(ahead.pop()):
            if id(each) not in found and not isinstance(each, _OUTSIDE):
                found.add(id(each))
                ahead.append(each)
    return len(found)
