"""Networks: cells, the stack that makes layers of them, and the table of all by name.

>>> import mnemoscope as ms
>>> layer = ms.nn.NNRNN(3, 64)
>>> type(ms.nn.create("nnrnn", input_size=3, hidden_size=64)).__name__ == type(layer).__name__
True
"""

from mnemoscope.nn.automaton import WeightedAutomaton
from mnemoscope.nn.feature_maps import AffineReLU, Powers, RandomFeatures
from mnemoscope.nn.network import Network
from mnemoscope.nn.networks.birnn import BIRNN
from mnemoscope.nn.networks.cp import CP
from mnemoscope.nn.networks.cprnn import CPBIRNN, CPRNN
from mnemoscope.nn.networks.elman import IRNN, RNN, LinearRNN, OrthRNN
from mnemoscope.nn.networks.eurnn import EURNN
from mnemoscope.nn.networks.exprnn import ExpRNN
from mnemoscope.nn.networks.full_urnn import FullURNN
from mnemoscope.nn.networks.gated import GRU, LSTM
from mnemoscope.nn.networks.goru import GORU
from mnemoscope.nn.networks.h_detach import HDetachLSTM
from mnemoscope.nn.networks.henaff import Henaff
from mnemoscope.nn.networks.mirnn import MIRNN
from mnemoscope.nn.networks.nnrnn import NNRNN
from mnemoscope.nn.networks.ornn import ORNN
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.nn.networks.scornn import SCORNN
from mnemoscope.nn.networks.scurnn import SCURNN
from mnemoscope.nn.networks.second_order import SecondOrderRNN
from mnemoscope.nn.networks.soft_orth import SoftOrth
from mnemoscope.nn.networks.tt import TT
from mnemoscope.nn.networks.urnn import URNN
from mnemoscope.nn.once import Once
from mnemoscope.nn.parallel import Parallel, ParallelOptions
from mnemoscope.nn.population import Population
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.registry import Card, create, get, names, network
from mnemoscope.nn.sequence import SequenceNetwork
from mnemoscope.nn.spec import NetworkSpec
from mnemoscope.nn.stack import Layer, Stack, StackOptions, Weights
from mnemoscope.nn.storage import load, save
from mnemoscope.nn.tensor_classifier import TensorClassifier

__all__ = [
    "BIRNN",
    "CP",
    "CPBIRNN",
    "CPRNN",
    "EURNN",
    "GORU",
    "GRU",
    "IRNN",
    "LSTM",
    "MIRNN",
    "NNRNN",
    "ORNN",
    "RAC",
    "RNN",
    "SCORNN",
    "SCURNN",
    "TT",
    "URNN",
    "AffineReLU",
    "Card",
    "ExpRNN",
    "FullURNN",
    "HDetachLSTM",
    "Henaff",
    "Layer",
    "LinearRNN",
    "Network",
    "NetworkSpec",
    "Once",
    "OrthRNN",
    "Parallel",
    "ParallelOptions",
    "Population",
    "Powers",
    "RandomFeatures",
    "Recurrent",
    "SecondOrderRNN",
    "SequenceNetwork",
    "SoftOrth",
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
    "save",
]
