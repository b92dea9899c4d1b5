"""The campaign behind the book's page of promises: faults, malformed input and load, in bounded time.

``python -m tools.stress`` (``make stress``) runs all of it, prints how many faults and inputs there were and how many
ended as promised, and appends a line for each kind to ``results/stress.jsonl``; ``--short`` is the form that the tests
run. A further kind is one more entry in ``STAGES`` of :mod:`tools.stress.jobs`, in
``TRIALS`` of :mod:`tools.stress.disk`, or in ``SOURCES`` of :mod:`tools.stress.malformed`.
"""

from dataclasses import dataclass, field


@dataclass
class Tally:
    """How often something was tried and how often it held; what did not hold, in words."""

    part: str  #: "faults", "malformed input" or "load"
    name: str  #: what was tried
    tried: int = 0
    held: int = 0
    problems: list[str] = field(default_factory=list)
    facts: dict = field(default_factory=dict)  #: further numbers, for the record

    def count(self, problem: str = "") -> None:
        """Count one case, which held if there is no problem."""
        self.tried += 1
        if problem:
            self.problems.append(problem)
        else:
            self.held += 1

    def __str__(self) -> str:
        more = "".join(f", {name} {value:,}" for name, value in self.facts.items())
        return f"{self.part:16} {self.name:34} {self.held:5} of {self.tried:5} held{more}"
