"""Theorems: what a paper states, whether it is true, a live check, and what it says of one network."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mnemoscope.core.errors import UserError, choice, expected
from mnemoscope.core.references import REFERENCES
from mnemoscope.core.references import reference as named
from mnemoscope.core.registry import Registry
from mnemoscope.theory.theorems.view import NetworkView

__all__ = [
    "SEVERITIES",
    "STATUSES",
    "THEOREMS",
    "TOPICS",
    "Instance",
    "Theorem",
    "Verdict",
    "check",
    "claims",
    "theorem",
]

STATUSES = {"proved": "proved", "measured": "measured", "false": "false as published"}
"""``proved``: there is a proof, the check tries it on cases. ``measured``: a conjecture or an observation that held on
the cases tried. ``false``: false as published; the check shows a witness, and that the corrected statement holds."""

SEVERITIES = ("wrong result", "wrong constant", "missing condition", "misprint")
"""Kinds of errata. A wrong result misleads whoever relies on it; a wrong constant has the right form; a statement with
a missing condition is true under one; a misprint is not what the authors meant or used."""

TOPICS = {
    "capacity": "Memory capacity",
    "fisher": "Fisher memory",
    "copying": "Copying",
    "gradients": "Gradients",
    "spectrum": "Spectrum",
    "separation": "Separation rank",
    "degree": "Polynomials",
    "tracking": "State tracking",
    "reach": "What training can reach",
    "state": "State and cost",
}
"""Subjects of what theorems say of a network, in the order in which a page shows them."""


@dataclass(frozen=True)
class Verdict:
    """Result of a live check.

    Attributes
    ----------
    confirmed
        Whether the check agrees with the theorem's status: no exception among the cases of a true statement, a witness
        against a false one and no exception to its correction.
    cases
        How many cases were tried.
    evidence
        The numbers, in one line; for a false statement the witness, concrete enough to be repeated by hand.
    """

    confirmed: bool
    cases: int
    evidence: str

    def __str__(self) -> str:
        found = "confirmed" if self.confirmed else "NOT CONFIRMED"
        return f"{found} on {self.cases:,} case{'' if self.cases == 1 else 's'}: {self.evidence}"


@dataclass(frozen=True)
class Instance:
    """A theorem with the numbers of one network in it.

    Attributes
    ----------
    text
        One sentence or two, with the numbers in them.
    value
        The main number; None where it is infinite or there is none.
    status
        ``"exact"``: it is so. ``"bound"``: it cannot be more, or less, as the text says. ``"conjecture"``: it held in
        every case that was tried, and nobody has proved it.
    """

    text: str
    value: float | None
    status: Literal["exact", "bound", "conjecture"]


Check = Callable[[int], Verdict]
Evaluate = Callable[[NetworkView], Instance]


@dataclass(eq=False, repr=False)
class Theorem:
    """A theorem, conjecture or erratum.

    Attributes
    ----------
    name
        By which it is checked: ``kerg-delay-line``.
    reference
        Key of the bibliography; empty for what is Mnemoscope's own.
    place
        Where it stands there: ``Prop. 3.4.1``.
    statement
        What is claimed, in our words.
    status
        A key of `STATUSES`.
    evaluate
        The live check: cases drawn from a seed, a `Verdict`.
    severity, right
        Of a false statement: one of `SEVERITIES`, and what is right instead.
    tested
        What the live check does.
    proof
        Its idea, where no paper has it.
    topic, speaks_of, instance
        What it says of a network, where it says something: a key of `TOPICS`, to which networks it applies, and the
        function that puts a network's numbers in.
    """

    name: str
    reference: str
    place: str
    statement: str
    status: str
    evaluate: Check
    severity: str = ""
    right: str = ""
    tested: str = ""
    proof: str = ""
    topic: str = ""
    speaks_of: Callable[[NetworkView], bool] | None = None
    instance: Evaluate | None = None

    def __str__(self) -> str:
        severity = f" ({self.severity})" if self.severity else ""
        return f"{self.name} ({self.source}): {STATUSES[self.status]}{severity}"

    def __repr__(self) -> str:
        return f"<theorem {self}>"

    @property
    def source(self) -> str:
        """Paper and place: ``Kerg 2022, Prop. 3.4.1``."""
        paper = named(self.reference).short if self.reference else "Mnemoscope"
        return f"{paper}, {self.place}" if self.place else paper

    def check(self, seed: int = 0) -> Verdict:
        """Evaluate the statement on cases drawn from a seed. A check that breaks confirms nothing."""
        try:
            found = self.evaluate(seed)
        except Exception as error:  # the other theorems' checks go on
            reason = " ".join(str(error).split())
            return Verdict(confirmed=False, cases=0, evidence=f"the check broke: {type(error).__name__}: {reason}")
        return Verdict(bool(found.confirmed), int(found.cases), found.evidence)

    def applies(self, network: Any) -> bool:
        """Say whether it speaks of a network."""
        return self.speaks_of is not None and self.speaks_of(view(network))

    def value(self, network: Any) -> Instance:
        """Return what it says of a network to which it applies."""
        if self.instance is None or not self.applies(network):
            raise UserError(f"the theorem {self.name!r} says nothing of this network; theorem.applies(network) asks")
        return self.instance(view(network))

    def about(self, topic: str, speaks_of: Callable[[NetworkView], bool]) -> Callable[[Evaluate], Evaluate]:
        """Return a decorator of the function that puts a network's numbers in."""
        choice("topic", topic, TOPICS)

        def attach(instance: Evaluate) -> Evaluate:
            self.topic, self.speaks_of, self.instance = topic, speaks_of, instance
            return instance

        return attach

    def facts(self) -> dict[str, Any]:
        """Return what the theorem is, as JSON holds it."""
        fields = ("name", "source", "reference", "status", "severity", "statement", "proof", "tested")
        return {name: getattr(self, name) for name in fields} | {"correction": self.right}


THEOREMS: Registry[Theorem] = Registry("claim", "mnemoscope.theorems", Theorem, listed="mnemoscope theory")


def theorem(
    name: str, reference: str, place: str, *, status: str = "proved", severity: str = ""
) -> Callable[[Check], Theorem]:
    """Return a decorator that makes a live check, ``seed -> Verdict``, into a theorem and files it.

    The docstring of the check is the statement, followed by ``Right:`` and what is right instead, for an erratum, by
    ``Proof:`` where no paper has it, and by ``Check:`` and what is tested.

    Parameters
    ----------
    name, reference, place
        As of a `Theorem`.
    status
        ``"proved"`` or ``"measured"``; a statement with a severity is false.
    severity
        Of a statement that is false as published.
    """
    if reference and reference not in REFERENCES:
        raise expected("reference", "a key of the bibliography", reference)
    if severity:
        choice("severity", severity, SEVERITIES)

    def file(evaluate: Check) -> Theorem:
        said = _described(evaluate)
        if bool(severity) != bool(said["Right"]):
            raise expected("severity", "given together with 'Right:' in the docstring", severity)
        kind = "false" if severity else choice("status", status, ("proved", "measured"))
        found = Theorem(
            name,
            reference,
            place,
            said["statement"],
            kind,
            evaluate,
            severity,
            said["Right"],
            said["Check"],
            said["Proof"],
        )
        return THEOREMS.register(name)(found)

    return file


def _described(evaluate: Check) -> dict[str, str]:
    """Return the parts of a check's docstring, each as one line."""
    first, *rest = re.split(r"^(Right|Proof|Check): ", inspect.getdoc(evaluate) or "", flags=re.MULTILINE)
    parts = {"statement": first, "Right": "", "Proof": "", "Check": ""} | dict(zip(rest[::2], rest[1::2], strict=True))
    return {name: " ".join(text.split()) for name, text in parts.items()}


def claims(status: str | None = None, severity: str | None = None) -> list[Theorem]:
    """Return the theorems, conjectures and errata, by name.

    Parameters
    ----------
    status
        Only those that are ``"proved"``, ``"measured"`` or ``"false"``.
    severity
        Only errata of this severity, or of those that begin with this word: ``"wrong"``.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> found = ms.theory.claims(status="false", severity="misprint")[0]
    >>> found.name, found.source
    ('depth-equation-2', 'Lizaire et al. 2026, Eq. 2')
    """
    found = [THEOREMS[name] for name in THEOREMS]
    if status is not None:
        choice("status", status, STATUSES)
        found = [each for each in found if each.status == status]
    if severity is not None:
        if not any(kind.startswith(severity) for kind in SEVERITIES):
            choice("severity", severity, SEVERITIES)
        found = [each for each in found if each.severity and each.severity.startswith(severity)]
    return found


def check(name: str, seed: int = 0) -> Verdict:
    """Evaluate one theorem live.

    Parameters
    ----------
    name
        Of `claims`.
    seed
        Draws the cases.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> print(ms.theory.check("depth-cheapest-network"))
    confirmed on 300 cases: so at every lag from 9 to 300
    """
    return THEOREMS[name].check(seed)


def view(network: Any) -> NetworkView:
    """Return a network as theorems see it."""
    return network if isinstance(network, NetworkView) else NetworkView(network)
