"""Answers of slurmrestd: whether one is usable, and what went wrong if not.

Rule: the HTTP status decides nothing that the body can decide. An answer with an error in it is an error, however many
jobs it lists. Only `NotDone` means that nothing was changed; after every other error of a write, this is unknown.
Source: slurmrestd of Slurm 22.05, observed; rest_api.html of 23.02 to 25.11; numbers from slurm_errno.h.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ....formats.documents.files import count_values
from ...base import AdapterError, ParseError

#: Most values and keys of an answer: about 2 GB in memory at the worst.
MOST_VALUES = 20_000_000
INVALID_JOB_ID = 2017
UNCHANGED = 1900
#: Error numbers of a controller, or of accounting, that did not answer or cannot identify the caller.
_AWAY = (*range(1000, 1010), *range(1800, 1820), *range(5000, 5010), *range(6000, 6100), 7000)
#: Error numbers of a body that slurmrestd did not understand and did not pass on.
_NOT_UNDERSTOOD = range(9000, 9400)


class NotDone(AdapterError):
    """Slurm was surely not asked to change anything.

    Kinds: `unsupported`: not possible over REST; `absent`: not offered; `unreachable`: no server listens.
    """

    def __init__(self, message: str, *, kind: str = "unsupported", stderr_tail: str = "") -> None:
        super().__init__(message, transient=kind != "unsupported", kind=kind, stderr_tail=stderr_tail)


class Unauthorised(AdapterError):
    """The token was not accepted, or no valid one is available."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=True, kind="token")


class Unchanged(Exception):
    """Nothing has changed since the last read."""


def read(request: str, status: int, body: bytes) -> dict[str, Any]:
    """Return the body of an answer if it is without error.

    Args:
        request: Name of the request, for errors.
        status: HTTP status.
        body: Body as received.

    Raises:
        Unchanged: Nothing is new since the requested time.
        ParseError: The body is incomplete or of another shape.
        AdapterError: slurmrestd or Slurm refuses.
    """
    if status == 304:
        raise Unchanged
    if status in (401, 403):
        raise Unauthorised(f"{request}: slurmrestd does not accept the token (HTTP {status})")
    try:
        # The texts of jobs are users' bytes, of any encoding; a table of Slurm's commands is read in the same way.
        text = body.decode(errors="surrogateescape")
        if count_values(text) > MOST_VALUES:
            raise ParseError(f"{request}: slurmrestd's answer has more than {MOST_VALUES:,} values")
        answer = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        raise _not_json(request, status, body) from None
    if not isinstance(answer, dict):
        raise ParseError(f"{request}: slurmrestd's answer is not a JSON object", stderr_tail=_tail(body))
    if wrong := [*_errors(request, answer.get("errors")), *_results(request, answer.get("results"))]:
        raise _refusal(request, wrong)
    if status >= 400:
        message = f"{request}: slurmrestd answers HTTP {status} without a reason"
        raise AdapterError(message, transient=True, kind="unreachable", stderr_tail=_tail(body))
    return answer


def warnings(answer: Mapping[str, Any]) -> str:
    """Return the warnings of an answer as one text."""
    texts = answer.get("warnings")
    return " ".join(str(warning) for warning in texts) if isinstance(texts, list) else ""


def _not_json(request: str, status: int, body: bytes) -> AdapterError:
    if status == 404:
        return NotDone(f"{request}: slurmrestd does not offer it (HTTP 404)", kind="absent")
    if status >= 500:
        message = f"{request}: slurmrestd answers HTTP {status} without a body"
        return AdapterError(message, transient=True, kind="unreachable", stderr_tail=_tail(body))
    return ParseError(f"{request}: the answer (HTTP {status}) is cut off or not JSON", stderr_tail=_tail(body))


def _errors(request: str, forms: object) -> Iterable[tuple[int, str]]:
    """Yield (number, text) of each error; the number is under one of three keys, or missing."""
    if forms is None:
        return
    if not isinstance(forms, list):
        raise ParseError(f"{request}: errors is not a list", stderr_tail=str(forms)[:200])
    for form in forms:
        if not isinstance(form, dict):
            yield 0, str(form)
            continue
        numbers = [form.get(key) for key in ("error_number", "error_code", "errno")]
        number = next((n for n in numbers if isinstance(n, int)), 0)
        texts = dict.fromkeys(str(form[key]) for key in ("error", "description") if form.get(key))
        yield number, ": ".join(texts) or f"error {number}"


def _results(request: str, forms: object) -> Iterable[tuple[int, str]]:
    """Yield errors of single jobs, as an update reports them since Slurm 23.11."""
    for form in forms if isinstance(forms, list) else ():
        if isinstance(form, dict) and form.get("error_code"):
            yield from _errors(request, [{**form, "description": form.get("why")}])


def _refusal(request: str, wrong: list[tuple[int, str]]) -> AdapterError:
    numbers, problems = {number for number, _ in wrong}, "; ".join(text for _, text in wrong)
    message, tail = f"{request}: {problems[:300]}", problems[:500]
    if UNCHANGED in numbers:
        raise Unchanged
    if numbers & {*_NOT_UNDERSTOOD} or "Unknown key" in problems or "Disabled key" in problems:
        return NotDone(message, stderr_tail=tail)
    if INVALID_JOB_ID in numbers:
        return AdapterError(message, kind="gone", stderr_tail=tail)
    away = bool(numbers & {-1, *_AWAY})  # -1 is an expired token as well as a controller that is down
    return AdapterError(message, transient=away, kind="unreachable" if away else "refused", stderr_tail=tail)


def _tail(body: bytes) -> str:
    return body[-200:].decode(errors="replace")
