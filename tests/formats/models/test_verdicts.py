"""A card says each verdict, also that a model is worse."""

from __future__ import annotations

from pilotfish.formats.models.verdicts import IN_TRAINING, lines_of, ratio_text

ROW = {"trace": "year", "number": "bsld", "rival": "easy:order=f1", "copies": 20, "beats": False, "chosen": IN_TRAINING}


def test_what_is_worse_is_said_too() -> None:
    worse = ROW | {"ratio": 18.6, "low": 14.0, "high": 20.0, "chosen": "best in hindsight"}
    better = ROW | {"ratio": 0.82, "low": 0.78, "high": 0.86, "beats": True}
    unclear = ROW | {"ratio": 0.97, "low": 0.9, "high": 1.0012}
    assert lines_of([worse, better, unclear]) == [
        "year, bsld: is worse than easy:order=f1, best in hindsight:",
        "  18.60 (14.00 to 20.00) of its, 20 copies",
        "year, bsld: beats easy:order=f1, chosen in training:",
        "  0.82 (0.78 to 0.86) of its, 20 copies",
        "year, bsld: not shown to beat easy:order=f1, chosen in training:",
        "  0.97 (0.90 to 1.0012) of its, 20 copies",
    ]


def test_what_is_next_to_one_has_more_digits() -> None:
    assert [ratio_text(ratio) for ratio in (0.9988, 1.0, 1.0012, 0.994)] == ["0.9988", "1.00", "1.0012", "0.99"]
