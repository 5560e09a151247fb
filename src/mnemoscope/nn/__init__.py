"""Networks: cells, the stack that makes layers of them, and the table of all by name.

A network's class is imported when it is first used, and what few networks are made of.

>>> import mnemoscope as ms
>>> layer = ms.nn.NNRNN(3, 64)
>>> type(ms.nn.create("nnrnn", input_size=3, hidden_size=64)).__name__ == type(layer).__name__
True
"""

from typing import TYPE_CHECKING

from mnemoscope.core.lazy import lazy
from mnemoscope.nn.network import Network
from mnemoscope.nn.networks import TABLE
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.registry import Card, create, get, names, network
from mnemoscope.nn.stack import Layer, Stack, StackOptions, Weights

if TYPE_CHECKING:
    from mnemoscope.nn.automaton import WeightedAutomaton
    from mnemoscope.nn.bilinear import MatrixLinear
    from mnemoscope.nn.feature_maps import AffineReLU, Powers, RandomFeatures
    from mnemoscope.nn.linear_system import LinearSystem
    from mnemoscope.nn.networks.birnn import *
    from mnemoscope.nn.networks.corelnet import *
    from mnemoscope.nn.networks.cp import *
    from mnemoscope.nn.networks.cprnn import *
    from mnemoscope.nn.networks.deltanet import *
    from mnemoscope.nn.networks.elman import *
    from mnemoscope.nn.networks.esbn import *
    from mnemoscope.nn.networks.eurnn import *
    from mnemoscope.nn.networks.exprnn import *
    from mnemoscope.nn.networks.full_urnn import *
    from mnemoscope.nn.networks.gated import *
    from mnemoscope.nn.networks.gla import *
    from mnemoscope.nn.networks.goru import *
    from mnemoscope.nn.networks.h_detach import *
    from mnemoscope.nn.networks.henaff import *
    from mnemoscope.nn.networks.hgrn2 import *
    from mnemoscope.nn.networks.lru import *
    from mnemoscope.nn.networks.mamba import *
    from mnemoscope.nn.networks.mamba2 import *
    from mnemoscope.nn.networks.matntm import *
    from mnemoscope.nn.networks.matrix_queue import *
    from mnemoscope.nn.networks.matrixrnn import *
    from mnemoscope.nn.networks.memrnn import *
    from mnemoscope.nn.networks.mingru import *
    from mnemoscope.nn.networks.mirnn import *
    from mnemoscope.nn.networks.mlstm import *
    from mnemoscope.nn.networks.mnm import *
    from mnemoscope.nn.networks.nnrnn import *
    from mnemoscope.nn.networks.ntm import *
    from mnemoscope.nn.networks.ornn import *
    from mnemoscope.nn.networks.predinet import *
    from mnemoscope.nn.networks.rac import *
    from mnemoscope.nn.networks.relation_network import *
    from mnemoscope.nn.networks.relational_lstm import *
    from mnemoscope.nn.networks.relational_ntm import *
    from mnemoscope.nn.networks.relational_transformer import *
    from mnemoscope.nn.networks.relrnn import *
    from mnemoscope.nn.networks.retnet import *
    from mnemoscope.nn.networks.rglru import *
    from mnemoscope.nn.networks.rwkv7 import *
    from mnemoscope.nn.networks.s4 import *
    from mnemoscope.nn.networks.s4d import *
    from mnemoscope.nn.networks.sab import *
    from mnemoscope.nn.networks.scornn import *
    from mnemoscope.nn.networks.scurnn import *
    from mnemoscope.nn.networks.second_order import *
    from mnemoscope.nn.networks.slstm import *
    from mnemoscope.nn.networks.soft_orth import *
    from mnemoscope.nn.networks.transformer import *
    from mnemoscope.nn.networks.tt import *
    from mnemoscope.nn.networks.urnn import *
    from mnemoscope.nn.once import Once
    from mnemoscope.nn.parallel import Parallel, ParallelOptions
    from mnemoscope.nn.population import Population
    from mnemoscope.nn.sequence import SequenceNetwork
    from mnemoscope.nn.spec import NetworkSpec
    from mnemoscope.nn.storage import load, safe_globals, save
    from mnemoscope.nn.tensor_classifier import TensorClassifier

_HOMES = {
    "NetworkSpec": "spec",
    "Once": "once",
    "SequenceNetwork": "sequence",
    "LinearSystem": "linear_system",
    "load": "storage",
    "safe_globals": "storage",
    "save": "storage",
    "WeightedAutomaton": "automaton",
    "MatrixLinear": "bilinear",
    "AffineReLU": "feature_maps",
    "Powers": "feature_maps",
    "RandomFeatures": "feature_maps",
    "Parallel": "parallel",
    "ParallelOptions": "parallel",
    "Population": "population",
    "TensorClassifier": "tensor_classifier",
} | {cls: f"networks.{file}" for file, _, cls in (place.partition(":") for place in TABLE.values())}

__all__ = [
    "AffineReLU",
    "Card",
    "Layer",
    "LinearSystem",
    "MatrixLinear",
    "Network",
    "NetworkSpec",
    "Once",
    "Parallel",
    "ParallelOptions",
    "Population",
    "Powers",
    "RandomFeatures",
    "Recurrent",
    "SequenceNetwork",
    "Stack",
    "StackOptions",
    "TensorClassifier",
    "WeightedAutomaton",
    "Weights",
    "create",
    "get",
    "load",
    "names",
    "network",
    "safe_globals",
    "save",
]

__getattr__ = lazy(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOMES})
