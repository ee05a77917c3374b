"""The selection of workflows, jobs and nodes that a user asks for, for the daemon and for clients without one.

Rule: it decides what is shown, never what a user may see (see `access`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Chosen:
    """The selection that a user wants to see; None = all.

    Args:
        user: name of the owner of workflows and jobs.
        state: of jobs, or of nodes in `nodes`.
        workflow: id or name of workflows.
    """

    user: str | None = None
    state: str | None = None
    workflow: str | None = None

    def owned(self, owner: str | None) -> bool:
        """Return whether an owner, `ada (uid 1000)`, is chosen, by name or as it is shown; None = not known."""
        return self.user is None or (owner is not None and self.user in (owner, owner.partition(" (uid ")[0]))

    def named(self, workflow: str) -> bool:
        """Return whether the workflow of an id is chosen."""
        return self.workflow is None or self.workflow in (workflow, workflow.rpartition(".")[0])

    def documents(self, found: Iterable[dict[str, Any]], owner: str) -> list[dict[str, Any]]:
        """Return the chosen ones of documents of workflows, with the chosen jobs; a workflow without any is left out.

        Args:
            found: the documents.
            owner: of those that name none.
        """
        kept = [each for each in found if self.named(each["id"]) and self.owned(each.get("owner") or owner)]
        if self.state is None:
            return kept
        jobs = [[job for job in each["jobs"] if job["state"] == self.state] for each in kept]
        return [each | {"jobs": mine} for each, mine in zip(kept, jobs, strict=True) if mine]
