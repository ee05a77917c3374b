"""Other names for the users, accounts, jobs, paths and nodes of a site, the same in all of its files.

Rule: one name has one other name of its kind, whatever file it stands in; other names are numbered in the order in
which the names come. `root` stays, because Slurm's tree of accounts begins there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ...simulate.errors import ConfigError
from .. import slurm_values
from ..hostlist import expand, fold

#: Words that Slurm writes where a name could stand, and root.
_NO_NAMES = frozenset((*slurm_values.UNKNOWN, "all", "none assigned", "root"))


class AnonymousNames:
    """Other names by kind: user, account, group, job, reservation, cluster, switch, node.

    Args:
        nodes: the nodes in the order of the site, if they get other names, too; `node01`, `node02` and so on.
    """

    def __init__(self, nodes: Iterable[str] = ()) -> None:
        names = list(dict.fromkeys(nodes))
        width = len(str(len(names)))
        self._nodes = {name: f"node{number:0{width}}" for number, name in enumerate(names, start=1)}
        self._names: dict[str, dict[str, str]] = {}

    def one(self, kind: str, name: str) -> str:
        """Return the other name of a name; a word that is no name stays."""
        if name.strip().lower() in _NO_NAMES:
            return name
        names = self._names.setdefault(kind, {})
        return names.setdefault(name, f"{kind}{len(names) + 1}")

    def each(self, kind: str, text: str) -> str:
        """Return the other names in a list such as `a,-b`."""
        words = [(word.lstrip("+-"), word) for word in text.split(",")]
        return ",".join(f"{word[: len(word) - len(name)]}{self.one(kind, name)}" for name, word in words)

    def listed(self, kind: str, text: str) -> str:
        """Return the other names in a list such as `s[1-4]`; a list that cannot be read becomes ""."""
        try:
            return fold(self.one(kind, name) for name in expand(text))
        except ConfigError:
            return ""

    def nodes(self, text: str) -> str:
        """Return the other names in a list such as `n[1-4]`; a list that cannot be read becomes ""."""
        if not self._nodes or text.strip().lower() in _NO_NAMES:
            return text
        if "/" in text:
            return "/x"
        try:
            return fold(self._nodes.get(name) or self.one("node", name) for name in expand(text))
        except ConfigError:
            return ""

    def mapping(self) -> str:
        """Return the names and other names by kind, as JSON."""
        kinds: Mapping[str, Mapping[str, str]] = {**self._names, "node of the site": self._nodes}
        return json.dumps({kind: names for kind, names in kinds.items() if names}, indent=1, sort_keys=True) + "\n"
