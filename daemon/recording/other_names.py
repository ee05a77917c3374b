"""Other names for the people, accounts, jobs and commands of a record, so that its replay still decides the same.

Rule: names of a kind keep their order, user ids keep their number of digits and their order, and jobs that count as
one kind of jobs still do (`profiles.identity`). So all names are collected first, and numbered in their order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from ...profiles import library
from ...profiles.identity import COMMAND, KIND, owner_apart, without_numbers
from ...simulate.model.job import DEFAULT_PROFILE

#: Kinds of names that identify a kind of jobs once their long numbers are taken out.
_NUMBERED = ("job", "script")
_NO_ACCOUNT = "no account"
_NAME = re.compile(r"(.*?)(?: #([0-9a-f#]+))?", re.DOTALL)
_KIND = re.compile(rf"{KIND}(.*) of (.*)/([^/,]*), ([0-9]+ cores?(?: on [0-9]+ nodes)?)", re.DOTALL)
_EXTENT = re.compile(r" on [0-9]+ nodes$")
_APART = re.compile(r" of uid -?[0-9]+$")
_GIVEN = " (given)"
_WORD = re.compile(r"[^\s,;:()'\"]+")
_DIGITS = re.compile(r"-?[0-9]+", re.ASCII)


class OtherNames:
    """Other names by kind; collects names until `number` is called.

    Args:
        manager: name of the resource manager: the first part of the keys of its own jobs, which stay.
    """

    def __init__(self, manager: str) -> None:
        self.manager = manager
        self._names, self._uids = dict[str, set[str]](), set[int]()
        self._bases = {kind: set[str]() for kind in _NUMBERED}
        self._others: Mapping[str, Mapping[str, str]] | None = None
        self._other_uids: Mapping[int, int] = {}
        self._letters: Mapping[str, Mapping[str, str]] = {}
        self._words = frozenset[str]()
        #: Names of kinds of jobs too long for their parts to be read, as their jobs give them.
        self.long_kinds = dict[str, str]()
        #: Texts that were replaced.
        self.texts = dict[str, str]()

    @property
    def is_numbered(self) -> bool:
        """Return whether collecting has ended."""
        return self._others is not None

    def number(self) -> None:
        """End collecting. O(names x log(names))."""
        self._letters = {kind: _lettered(bases) for kind, bases in self._bases.items()}
        self._others = {kind: self._numbered(kind, names) for kind, names in self._names.items()}
        self._other_uids = _numbered_uids(self._uids)
        every = (*self._names.values(), *({str(uid)} for uid in self._uids))
        self._words = frozenset(word for names in every for name in names for word in _WORD.findall(name))

    def _numbered(self, kind: str, names: set[str]) -> dict[str, str]:
        width = max(6 if kind in _NUMBERED else 3, len(str(len(names))))
        others = {name: f"{place:0{width}}" for place, name in enumerate(sorted(names), 1)}
        if kind not in _NUMBERED:
            return {name: f"{kind}{other}" for name, other in others.items()}
        stem = "" if kind == "script" else kind
        return {name: f"{stem}{other}-k{self._letters[kind][_base(name)]}" for name, other in others.items()}

    def one(self, kind: str, name: str) -> str:
        """Return the other name of a name; "" stays. While names are collected, return the name itself."""
        if not name:
            return name
        if self._others is None:
            self._names.setdefault(kind, set()).add(name)
            if kind in _NUMBERED:
                self._bases[kind].add(_base(name))
            return name
        return self._others[kind][name]

    def uid(self, number: int | None) -> int | None:
        """Return the other user id; 0, and None for an unknown one, stay."""
        if number is None or self._others is not None:
            return None if number is None else self._other_uids[number]
        self._uids.add(number)
        return number

    def person(self, text: str) -> str:
        """Return the other name of a user, or the other user id."""
        return str(self.uid(int(text))) if _DIGITS.fullmatch(text) else self.one("user", text)

    def account(self, text: str) -> str:
        """Return the other name of an account."""
        return text if text == _NO_ACCOUNT else self.one("account", text)

    def workflow(self, id: str) -> str:
        """Return the other id of a workflow; the resource manager's own jobs stay under its name."""
        if id == self.manager:
            return id
        return self.one("workflow" if id > self.manager else "flow", id)

    def job(self, id: str, workflow: str) -> str:
        """Return the other id of a job; a number of the resource manager stays, also that of taken cores.

        Args:
            id: of the job.
            workflow: of the job.
        """
        if workflow == self.manager and (_DIGITS.fullmatch(id) or id.startswith("+")):
            return id
        return self.one("job", id)

    def key(self, key: str) -> str:
        """Return the other key of a job, `workflow/job`."""
        workflow, slash, job = key.partition("/")
        return f"{self.workflow(workflow)}/{self.job(job, workflow)}" if slash else self.one("key", key)

    def kind(self, known_as: str) -> str:
        """Return the other name of a kind of jobs, see `Job.known_as`: `NAME[ #SCRIPT] of ACCOUNT/USER`."""
        name, of, owner = known_as.rpartition(" of ")
        if not of:
            return self.one("job", known_as)
        account, slash, user = owner.rpartition("/")
        return f"{self._named(name)} of {self.account(account)}{slash}{self.person(user)}"

    def _named(self, text: str) -> str:
        match = _NAME.fullmatch(text)
        assert match is not None, "the pattern takes every text"
        name, script = match.groups()
        return self.one("job", name) + (f" #{self.one('script', script)}" if script else "")

    def profile(self, name: str) -> str:
        """Return the other name of a profile: one that a user gave it, or that of a command or a kind of jobs."""
        if not name or name == DEFAULT_PROFILE.name or name in library.profiles():
            return name
        if name.endswith(_GIVEN):
            return self.profile(name.removesuffix(_GIVEN)) + _GIVEN
        if name in self.long_kinds:
            return self.long_kinds[name]
        if match := _KIND.fullmatch(name):
            kind, account, user, extent = match.groups()
            return f"{KIND}{self._base_of_kind(kind)} of {self.account(account)}/{self.person(user)}, {extent}"
        if (uid := owner_apart(name)) is not None:
            return f"{self.profile(_APART.sub('', name))} of uid {self.uid(uid)}"
        if name.startswith((COMMAND, KIND)):
            extent = match[0] if (match := _EXTENT.search(name)) else ""
            return f"{name.partition(' ')[0]} {self.command(name)}{extent}"
        return self.one("profile", name)

    def command(self, name: str) -> str:
        """Return the one word that stands for a command, from its name (`identity.signature`)."""
        return self.one("command", _EXTENT.sub("", name))

    def _base_of_kind(self, text: str) -> str:
        """Return what identity makes of the other names of a kind whose long numbers it has taken out."""
        match = _NAME.fullmatch(text)
        assert match is not None, "the pattern takes every text"
        bases = dict(zip(_NUMBERED, (_base(group or "") for group in match.groups()), strict=True))
        if self._others is None:
            for kind, base in bases.items():
                self._bases[kind].add(base)
            return text
        job, script = (self._letters[kind][base] for kind, base in bases.items())
        return f"job#-k{job}" + (f" ##-k{script}" if match[2] else "")

    def text(self, text: str, *, is_foreign: bool = False) -> str:
        """Return a sentence without names, itself if it has none; an equal one for equal texts.

        Args:
            text: the sentence.
            is_foreign: a person or another program wrote it, so that it is always replaced.
        """
        if not text or self._others is None:
            return text
        if not is_foreign and all(self._is_plain(word) for word in _WORD.findall(text)):
            return text
        return self.texts.setdefault(text, f"text {len(self.texts) + 1}")

    def _is_plain(self, word: str) -> bool:
        manager, slash, number = word.partition("/")
        if slash and manager == self.manager and number.isdecimal():
            return True
        return word not in self._words and not any(sign in word for sign in "/@=~\\")

    def line(self, line: str) -> str:
        """Return a line of a cycle with other names, such as `start KEY on NODES`, with a text that was replaced.

        Args:
            line: as `describe` made it, with an error or a reason at its end.
        """
        verb, _, rest = line.partition(" ")
        for text in sorted(self.texts, key=len, reverse=True):
            rest = rest.replace(text, self.texts[text])
        return f"{verb} {_WORD.sub(self._other_word, rest)}"

    def _other_word(self, match: re.Match[str]) -> str:
        word = match[0].rstrip(":.")
        try:
            return (self.key(word) if "/" in word else word) + match[0][len(word) :]
        except KeyError:  # it is no key of a job
            return match[0]

    def mapping(self) -> str:
        """Return the names and what they became by kind, as JSON."""
        kinds: dict[str, Mapping[str, str]] = dict(self._others or {})
        kinds["uid"] = {str(uid): str(other) for uid, other in self._other_uids.items()}
        kinds["text"] = self.texts
        return json.dumps({kind: names for kind, names in kinds.items() if names}, indent=1, sort_keys=True) + "\n"


def _base(name: str) -> str:
    """Return what `identity` keeps of a name: no long numbers, one blank between words, no signs that do not print."""
    text = " ".join(without_numbers(name).split())
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _lettered(bases: Iterable[str]) -> dict[str, str]:
    """Return letters for each text, in the order of the texts: `aaa`, `aab` and so on."""
    ordered, digits = sorted(bases), "abcdefghijklmnopqrstuvwxyz"
    length = 3
    while 26**length < len(ordered):
        length += 1
    return {
        base: "".join(digits[place // 26**power % 26] for power in reversed(range(length)))
        for place, base in enumerate(ordered)
    }


def _numbered_uids(uids: Iterable[int]) -> dict[int, int]:
    """Return other user ids with as many digits, in the same order, also as texts; 0 stays."""
    others, counts = {0: 0}, dict[tuple[bool, int], int]()
    for uid in sorted(set(uids) - {0}, key=abs):
        size = uid < 0, len(str(abs(uid)))
        others[uid] = (10 ** (size[1] - 1) + counts.get(size, 0)) * (-1 if uid < 0 else 1)
        counts[size] = counts.get(size, 0) + 1
    return others
