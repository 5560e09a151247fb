"""corelnet, corelnet-t: answers from the matrix of similarities between panels, and from nothing else."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import choice, expected, positive_int
from mnemoscope.nn.declared import Layer
from mnemoscope.nn.registry import network
from mnemoscope.nn.relational import FEATURES, Relational, RelationalOptions, mlp

__all__ = ["CoRelNet", "CoRelNetT", "SimilarityNetwork"]

_ESBN = 1_711_877 - 1_026
"""Parameters of an ESBN behind its encoder and normalisation, without its 513 for every answer."""


class SimilarityNetwork(Relational):
    """A relational network whose panels are compared by dot products of their features.

    Parameters
    ----------
    asymmetric
        Whether the similarity is (W1 z_i)^T (W2 z_j), with learned 128 x 128 matrices, instead of z_i^T z_j.
    asymmetric_on
        Where the matrices stand: on the ``"normalised"`` features, as in the document, or on the ``"encoded"`` ones,
        each product normalised afterwards, as in the released code.
    cat
        Whether what answers also sees the features themselves.
    """

    has_relations: ClassVar[bool] = True

    def __init__(
        self,
        panels: int,
        answers: int,
        *,
        asymmetric: bool = False,
        asymmetric_on: str = "normalised",
        cat: bool = False,
        **common: Unpack[RelationalOptions],
    ) -> None:
        for name, value in (("asymmetric", asymmetric), ("cat", cat)):
            if not isinstance(value, bool):
                raise expected(name, "true or false", value)
        self.asymmetric, self.cat = asymmetric, cat
        self.asymmetric_on = choice("asymmetric_on", asymmetric_on, ("normalised", "encoded"))
        super().__init__(panels, answers, **common)

    def declare(self, layer: Layer) -> None:
        """Add the two matrices of an asymmetric similarity."""
        super().declare(layer)
        if self.asymmetric:
            for name in ("reference", "comparison"):
                self.submodule(name, nn.Linear(FEATURES, FEATURES, bias=False), full_name=name)

    def normalise(self, features: Float[Tensor, "panels batch features"]) -> Float[Tensor, "panels batch features"]:
        """Return the normalised features; with both matrices on encoded ones, three of them side by side."""
        plain = super().normalise(features)
        if not self.asymmetric or self.asymmetric_on == "normalised":
            return plain
        encoded = self.sparse(features) if self.l1 != "none" else features  # type: ignore[operator]
        sides = [self.context(getattr(self, name)(encoded)) for name in ("reference", "comparison")]
        return torch.cat([plain, *sides], -1)

    def compared(
        self, z: Float[Tensor, "panels batch features"]
    ) -> tuple[Float[Tensor, "panels batch 128"], Float[Tensor, "panels batch 128"], Float[Tensor, "panels batch 128"]]:
        """Return the features, and both sides of the similarity: row i and column j."""
        if not self.asymmetric:
            return z, z, z
        if self.asymmetric_on == "encoded":
            plain, rows, columns = z.chunk(3, -1)
            return plain, rows, columns
        return z, self.reference(z), self.comparison(z)  # type: ignore[operator]

    def similarities(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch panels panels"]:
        """Return the products of all panels (rows) with all panels (columns)."""
        _, rows, columns = self.compared(z)
        return torch.einsum("ibf,jbf->bij", rows, columns)

    def relations(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch panels panels"]:
        """Return R: each row the softmax of the similarities to the panels up to its own, zero beyond."""
        ahead = torch.ones(self.panels, self.panels, dtype=torch.bool, device=z.device).triu(1)
        return self.similarities(z).masked_fill(ahead, -math.inf).softmax(-1)

    def sensory(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch all"]:
        """Return the features of all panels of an example, one after the other."""
        return self.compared(z)[0].transpose(0, 1).flatten(1)


@network(
    "corelnet",
    family="relational",
    equations=("R_ij = softmax_{j <= i}(z_i . z_j)", "y = MLP(lower triangle of R)"),
    state="0",
    references=("kerg2022",),
)
class CoRelNet(SimilarityNetwork):
    """A network that answers from the similarities of panels alone, by an MLP.

    Parameters
    ----------
    nhid
        Hidden units of the MLP; ``"esbn"``: as many as give the network the size of an ESBN.
    matrix
        ``"similarity"``: the lower triangle of R, diagonal included, row by row. ``"diff"``: all W (z_i - z_j), with a
        learned W. ``"mix"``: R or the differences, whole, chosen for every example by straight-through gumbel softmax:
        a query of the mean features against two learned keys of 16 numbers.
    """

    def __init__(
        self,
        panels: int,
        answers: int,
        *,
        nhid: int | str = 256,
        matrix: str = "similarity",
        asymmetric: bool = False,
        asymmetric_on: str = "normalised",
        cat: bool = False,
        **common: Unpack[RelationalOptions],
    ) -> None:
        self.matrix = choice("matrix", matrix, ("similarity", "diff", "mix"))
        if isinstance(nhid, str) and nhid != "esbn":
            raise expected("nhid", "a positive integer or 'esbn'", nhid)
        self.nhid = nhid if isinstance(nhid, str) else positive_int("nhid", nhid)
        super().__init__(panels, answers, asymmetric=asymmetric, asymmetric_on=asymmetric_on, cat=cat, **common)

    def declare(self, layer: Layer) -> None:
        """Add what makes the matrices, and the MLP."""
        super().declare(layer)
        if self.matrix != "similarity":
            self.submodule("scale", nn.Linear(FEATURES, 1, bias=False), full_name="scale")
        if self.matrix == "mix":
            self.submodule("query", nn.Linear(FEATURES, 16), full_name="query")
            self.parameter("keys", 2, 16, full_name="keys")
        inputs = self.panels * (self.panels + 1) // 2 if self.matrix == "similarity" else self.panels**2
        inputs += self.panels * FEATURES if self.cat else 0
        self.submodule("decoder", mlp(inputs, self._hidden(inputs), self.answers), full_name="decoder")

    def _hidden(self, inputs: int) -> int:
        if not isinstance(self.nhid, str):
            return self.nhid
        left = _ESBN + 513 * self.answers - self.answers
        each = inputs + 1 + self.answers
        return (2 * left + each) // (2 * each)  # the nearest, upwards from the middle

    def differences(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch panels panels"]:
        """Return W (z_i - z_j) for all pairs."""
        level: Tensor = self.scale(self.compared(z)[0]).squeeze(-1).T  # type: ignore[operator]
        return level.unsqueeze(2) - level.unsqueeze(1)

    def relations(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch panels panels"]:
        """Return R, or the differences, or the one that was chosen."""
        if self.matrix == "similarity":
            return super().relations(z)
        if self.matrix == "diff":
            return self.differences(z)
        rule = self.query(self.compared(z)[0].mean(0)) @ self.keys.T  # type: ignore[operator]
        if self.training:
            share = F.gumbel_softmax(rule, tau=1.0, hard=True)
        else:
            share = F.one_hot(rule.argmax(-1), 2).to(rule.dtype)
        both = torch.stack([super().relations(z), self.differences(z)], 1)
        return torch.einsum("br,brij->bij", share, both)

    def reason(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch answers"]:
        """Return the MLP's scores of the matrix."""
        found = self.relations(z)
        if self.matrix == "similarity":
            lower = torch.tril_indices(self.panels, self.panels, device=z.device)
            seen = found[:, lower[0], lower[1]]
        else:
            seen = found.flatten(1)
        seen = torch.cat([seen, self.sensory(z)], 1) if self.cat else seen
        scores: Tensor = self.decoder(seen)  # type: ignore[operator]
        return scores


_TOKEN, _HEADS, _INNER = 8, 8, 512


@network(
    "corelnet-t",
    family="relational",
    equations=(
        "R_ij = softmax_{j <= i}(z_i . z_j)",
        "tokens R P; u = norm(q + attention(q, R P)); y = MLP(norm(u + FFN(u)))",
    ),
    state="0",
    references=("kerg2022", "vaswani2017"),
)
class CoRelNetT(SimilarityNetwork):
    """A network that reads the rows of the matrix of similarities as tokens, by attention of one learned query.

    P is a learned T x 8 matrix; the attention has 8 heads of 64 numbers.
    """

    def declare(self, layer: Layer) -> None:
        """Add tokens, attention and MLPs."""
        super().declare(layer)
        self.parameter("positions", self.panels, _TOKEN, full_name="positions")
        self.parameter("question", _TOKEN, full_name="question")
        for name in ("queries", "keys", "values"):
            self.submodule(name, nn.Linear(_TOKEN, _INNER), full_name=name)
        self.submodule("project", nn.Linear(_INNER, _TOKEN), full_name="project")
        self.submodule("norm_attention", nn.LayerNorm(_TOKEN), full_name="norm_attention")
        self.submodule("feedforward", mlp(_TOKEN, 128, _TOKEN), full_name="feedforward")
        self.submodule("norm_feedforward", nn.LayerNorm(_TOKEN), full_name="norm_feedforward")
        inputs = _TOKEN + (self.panels * FEATURES if self.cat else 0)
        self.submodule("decoder", mlp(inputs, 256, self.answers), full_name="decoder")

    @property
    def _width(self) -> int:
        return self.panels

    def reason(self, z: Float[Tensor, "panels batch features"]) -> Float[Tensor, "batch answers"]:
        """Return the scores of what the query finds among the rows."""
        part: Any = self
        tokens = self.relations(z) @ part.positions
        query = part.question.expand(len(tokens), 1, -1)
        found = part.project(attend(part.queries(query), part.keys(tokens), part.values(tokens), _HEADS)[0])
        u = part.norm_attention(query + found)
        u = part.norm_feedforward(u + part.feedforward(u)).squeeze(1)
        scores: Tensor = part.decoder(torch.cat([u, self.sensory(z)], 1) if self.cat else u)
        return scores


def attend(
    queries: Float[Tensor, "batch asked inner"],
    keys: Float[Tensor, "batch tokens inner"],
    values: Float[Tensor, "batch tokens inner"],
    heads: int,
) -> tuple[Float[Tensor, "batch asked inner"], Float[Tensor, "batch heads asked tokens"]]:
    """Return what each query finds, softmax(q k^T / sqrt(width of a head)) v, and where it looked."""
    width = queries.shape[-1] // heads
    q, k, v = (x.view(*x.shape[:2], heads, width).transpose(1, 2) for x in (queries, keys, values))
    where = (q @ k.mT / math.sqrt(width)).softmax(-1)
    return (where @ v).transpose(1, 2).flatten(2), where
