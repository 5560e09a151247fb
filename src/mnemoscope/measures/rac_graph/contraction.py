"""Contraction of the tensor network of a RAC to a number, by quimb."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from torch import Tensor

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.measures.rac_graph.graph import Node, RACGraph, build_graph
from mnemoscope.nn.networks.rac import RAC

__all__ = ["contract_rac", "to_quimb"]

Weights = Mapping[str, Any]


def contract_rac(network: RAC | Weights, inputs: Any, unit: int = 0) -> Any:
    """Contract the tensor network of a RAC to the number that the RAC itself computes after its last step.

    Numbers keep their kind: a network and floats are contracted in float64, int64 and object arrays (Python's whole
    numbers, fractions) exactly. It needs the extra ``tensor-networks``.

    Parameters
    ----------
    network
        A RAC, or its weights by the names of its parameters: ``weight_ih_l0``, ``weight_hh_l0``, .., ``weight_out``.
    inputs
        The sequence x_1, .., x_T: (T, M).
    unit
        Which output.

    Examples
    --------
    >>> import numpy as np
    >>> weights = {"weight_ih_l0": np.array([[1, 2], [3, 4]]), "weight_hh_l0": np.array([[0, 1], [1, 1]])}
    >>> int(contract_rac(weights, np.array([[1, 1], [2, 0]]), unit=1))  # doctest: +SKIP
    60
    """
    weights = _weights(network)
    x = _array("inputs", inputs, 2)
    first = weights["weight_ih_l0"]
    layers = sum(name.startswith("weight_ih_l") for name in weights)
    if x.shape[1] != first.shape[1] or not len(x):
        raise expected("inputs", f"of shape (T, {first.shape[1]}), T at least 1", Description(x.shape))
    _check_shapes(weights, layers)
    graph = build_graph(x.shape[1], first.shape[0], len(x), layers, initial="initial_l0" in weights)
    tensors = to_quimb(graph, weights, x, unit).tensors
    # Not by the network's own `contract`, which multiplies by a power of ten and so makes floats of whole numbers.
    found = import_module("quimb.tensor").tensor_contract(*tensors, optimize="greedy", preserve_tensor=True)
    return np.asarray(found.data).item()


def to_quimb(graph: RACGraph, weights: Weights, inputs: Any, unit: int = 0) -> Any:
    """Return the tensors with these weights and inputs as a ``quimb.tensor.TensorNetwork``.

    Its tags are the kinds, ``layer1``, .. and ``step1``, ..; its indices ``b0``, ``b1``, ..
    """
    try:
        qtn: Any = import_module("quimb.tensor")
    except ImportError as error:
        message = "contracting a tensor network needs quimb: pip install 'mnemoscope[tensor-networks]'"
        raise UserError(message) from error
    x = np.asarray(inputs)
    delta = np.zeros((graph.R,) * 3, dtype=np.result_type(x, *(np.asarray(w) for w in weights.values())))
    delta[(np.arange(graph.R),) * 3] = 1
    out = _readout(graph, weights, unit, delta.dtype)

    def data(node: Node) -> Any:
        layer = f"_l{node.layer - 1}"
        named = {"W_I": "weight_ih", "W_H": "weight_hh", "initial": "initial"}
        if node.kind in named:
            return np.asarray(weights[named[node.kind] + layer])
        return {"input": x[node.step - 1], "delta": delta, "W_O": out}[node.kind]

    return qtn.TensorNetwork(
        qtn.Tensor(
            data(node), [f"b{bond}" for bond in node.bonds], [node.kind, f"layer{node.layer}", f"step{node.step}"]
        )
        for node in graph.nodes
    )


def _readout(graph: RACGraph, weights: Weights, unit: int, dtype: Any) -> Any:
    rows = (
        np.asarray(weights["weight_out"]) if "weight_out" in weights else np.eye(graph.R, dtype=np.int8).astype(dtype)
    )
    if isinstance(unit, bool) or not isinstance(unit, int) or not 0 <= unit < len(rows):
        raise expected("unit", f"an output from 0 to {len(rows) - 1}", unit)
    return rows[unit]


def _weights(network: RAC | Weights) -> dict[str, Any]:
    if isinstance(network, RAC):
        network.require_causal("contract_rac")
        return _weights({name: value.double() for name, value in network.named_parameters()})
    if not isinstance(network, Mapping) or "weight_ih_l0" not in network:
        raise expected("network", "a RAC, or its weights by name", network)
    return {name: _array(name, value, 1 if name.startswith("initial") else 2) for name, value in network.items()}


def _check_shapes(weights: dict[str, Any], layers: int) -> None:
    """Raise unless every layer has its matrices and their shapes chain."""
    R, M = weights["weight_ih_l0"].shape
    shapes: dict[str, tuple[int, ...]] = {}
    for k in range(layers):
        shapes |= {f"weight_ih_l{k}": (R, R if k else M), f"weight_hh_l{k}": (R, R)}
        if "initial_l0" in weights:
            shapes[f"initial_l{k}"] = (R,)
    if "weight_out" in weights:
        shapes["weight_out"] = (len(weights["weight_out"]), R)
    for name, shape in shapes.items():
        if name not in weights or weights[name].shape != shape:
            got = f"shape {weights[name].shape}" if name in weights else "none"
            raise expected(name, f"of shape {shape}", Description(got))


def _array(name: str, values: Any, ndim: int) -> Any:
    found = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if found.ndim != ndim:
        raise expected(name, f"an array of {ndim} dimensions", Description(f"shape {found.shape}"))
    if found.dtype.kind == "f":
        found = found.astype(np.float64)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise expected(name, "finite", Description("NaN or infinity"))
    return found
