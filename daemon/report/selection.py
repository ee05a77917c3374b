"""The selection of workflows, jobs and nodes that a user asks for, for the daemon and for clients without one.

Rule: it decides what is shown, never what a user may see (see `access`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True, slots=True)
class Chosen:
    """The selection that a user wants to see; None = all.

    Args:
        user: name of the owner of workflows and jobs.
        state: of jobs, or of nodes in `nodes`.
        workflow: id or name of workflows.
        partition: of jobs in the resource manager's queue: Slurm's partition, OAR's queue.
        name: of jobs, with the wildcards of a shell.
    """

    user: str | None = None
    state: str | None = None
    workflow: str | None = None
    partition: str | None = None
    name: str | None = None

    def owned(self, owner: str | None) -> bool:
        """Return whether an owner, `ada (uid 1000)`, is chosen, by name or as it is shown; None = not known."""
        return self.user is None or (owner is not None and self.user in (owner, owner.partition(" (uid ")[0]))

    def named(self, workflow: str) -> bool:
        """Return whether the workflow of an id is chosen."""
        return self.workflow is None or self.workflow in (workflow, workflow.rpartition(".")[0])

    def called(self, name: str) -> bool:
        """Return whether a job of this name is chosen."""
        return self.name is None or fnmatchcase(name, self.name)

    def documents(self, found: Iterable[dict[str, Any]], owner: str) -> list[dict[str, Any]]:
        """Return the chosen ones of documents of workflows, with the chosen jobs; a workflow without any is left out.

        Args:
            found: the documents.
            owner: of those that name none.
        """
        documents = []
        for document in found:
            if self.named(document["id"]) and self.owned(document.get("owner") or owner):
                jobs = [job for job in document["jobs"] if self._shows(job)]
                if jobs or not self.narrows:
                    documents.append(document | {"jobs": jobs})
        return documents

    @property
    def narrows(self) -> bool:
        """True if jobs of a workflow may be left out."""
        return (self.state, self.partition, self.name) != (None, None, None)

    def _shows(self, job: dict[str, Any]) -> bool:
        matches = self.partition in (None, job.get("partition", "")) and self.called(job.get("name") or job["id"])
        return matches and self.state in (None, job["state"])
