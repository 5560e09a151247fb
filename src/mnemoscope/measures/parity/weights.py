"""Weights of one network in another: matched by name and shape, or as a mapping says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from mnemoscope.core.errors import UserError, expected

__all__ = ["matched", "weights_of"]

_PART = re.compile(r"(?P<name>[^\[\s]+?)(\[(?P<first>\d+):(?P<last>\d+)\])?(?P<turned>\.T)?")


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Return the parameters under the names that their author gave them: an adapted module is `module` in our copy."""
    found: dict[str, Tensor] = dict(network.named_parameters())
    adapted = all(name.startswith("module.") for name in found)
    return {name.removeprefix("module."): each for name, each in found.items()} if adapted else found


def matched(
    given: Mapping[str, Tensor], wanted: Mapping[str, Tensor], mapping: Mapping[str, str] | None = None
) -> dict[str, Tensor]:
    """Return the tensors of `given` under the names of `wanted`.

    First those that `mapping` names (``{"W_f": "weight_ih_l0[8:16]", "b": "bias_ih_l0 + bias_hh_l0"}``; ``.T`` turns a
    matrix), then equal names, equal last parts of names, and shapes that only one tensor on either side has.
    """
    found = {name: _mapped(text, given, name, wanted) for name, text in (mapping or {}).items()}
    used = {part["name"] for text in (mapping or {}).values() for part in _parts(text)}
    left = {name: each for name, each in given.items() if name not in used}
    rules: tuple[Callable[[str, Tensor], object], ...] = (
        lambda name, each: (name, each.shape),
        lambda name, each: (name.rpartition(".")[2], each.shape),
        lambda name, each: each.shape,
    )
    for rule in rules:
        ours, theirs = _keyed(left, rule), _keyed({k: v for k, v in wanted.items() if k not in found}, rule)
        for key in ours.keys() & theirs.keys():
            if len(ours[key]) == len(theirs[key]) == 1:
                found[theirs[key][0]] = left.pop(ours[key][0])
    lacking = {name: each for name, each in wanted.items() if name not in found}
    if left or lacking:
        raise UserError(
            f"the weights cannot be matched: left over in the first {_listed(left)}, in the second {_listed(lacking)}; "
            "a mapping (--map FILE.json) from names of the second to names of the first would say which belong together"
        )
    return found


def _keyed(tensors: Mapping[str, Tensor], rule: Callable[[str, Tensor], object]) -> dict[object, list[str]]:
    found: dict[object, list[str]] = defaultdict(list)
    for name, each in tensors.items():
        found[rule(name, each)].append(name)
    return found


def _listed(tensors: Mapping[str, Tensor]) -> str:
    return ", ".join(f"{name} {tuple(each.shape)}" for name, each in tensors.items()) or "nothing"


def _parts(text: str) -> list[re.Match[str]]:
    found = [_PART.fullmatch(part.strip()) for part in str(text).split(" + ")]
    if not all(found):
        raise expected("a mapping", "of names such as weight_hh_l0[8:16] or bias_ih_l0 + bias_hh_l0", text)
    return [each for each in found if each]


def _mapped(text: str, given: Mapping[str, Tensor], name: str, wanted: Mapping[str, Tensor]) -> Tensor:
    if name not in wanted:
        raise expected("a mapping", "from names of the second network: " + ", ".join(wanted), name)
    parts = []
    for part in _parts(text):
        if part["name"] not in given:
            raise expected("a mapping", "to names of the first network: " + ", ".join(given), part["name"])
        whole = given[part["name"]]
        if part["first"] is not None and not int(part["first"]) < int(part["last"]) <= len(whole):
            raise expected(f"what is mapped to {name}", f"rows of {part['name']}, which has {len(whole)}", part[0])
        rows = whole if part["first"] is None else whole[int(part["first"]) : int(part["last"])]
        parts.append(rows.mT if part["turned"] else rows)
    if len({each.shape for each in parts}) > 1:
        raise expected(f"what is mapped to {name}", "a sum of tensors of one shape", text)
    total: Tensor = torch.stack(parts).sum(0)
    if total.shape != wanted[name].shape:
        raise expected(f"what is mapped to {name}", f"of shape {tuple(wanted[name].shape)}", tuple(total.shape))
    return total
