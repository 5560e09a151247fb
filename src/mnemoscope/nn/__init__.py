"""Networks: cells, the stack that makes layers of them, and the table of all by name.

>>> import mnemoscope as ms
>>> layer = ms.nn.NNRNN(3, 64)
>>> type(ms.nn.create("nnrnn", input_size=3, hidden_size=64)).__name__ == type(layer).__name__
True
"""

from mnemoscope.nn.automaton import WeightedAutomaton
from mnemoscope.nn.birnn import BIRNN
from mnemoscope.nn.classifier import Classifier
from mnemoscope.nn.cp import CP
from mnemoscope.nn.cprnn import CPBIRNN, CPRNN
from mnemoscope.nn.elman import IRNN, RNN, LinearRNN, OrthRNN
from mnemoscope.nn.eurnn import EURNN
from mnemoscope.nn.exprnn import ExpRNN
from mnemoscope.nn.feature_maps import AffineReLU, Powers, RandomFeatures
from mnemoscope.nn.full_urnn import FullURNN
from mnemoscope.nn.gated import GRU, LSTM
from mnemoscope.nn.goru import GORU
from mnemoscope.nn.h_detach import HDetachLSTM
from mnemoscope.nn.henaff import Henaff
from mnemoscope.nn.mirnn import MIRNN
from mnemoscope.nn.nnrnn import NNRNN
from mnemoscope.nn.ornn import ORNN
from mnemoscope.nn.population import Population
from mnemoscope.nn.rac import RAC
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.registry import Card, create, get, names, network
from mnemoscope.nn.scornn import SCORNN
from mnemoscope.nn.scurnn import SCURNN
from mnemoscope.nn.second_order import SecondOrderRNN
from mnemoscope.nn.sequence import SequenceNetwork
from mnemoscope.nn.soft_orth import SoftOrth
from mnemoscope.nn.stack import Stack, StackOptions
from mnemoscope.nn.storage import load, save
from mnemoscope.nn.tt import TT
from mnemoscope.nn.urnn import URNN

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
    "Classifier",
    "ExpRNN",
    "FullURNN",
    "HDetachLSTM",
    "Henaff",
    "LinearRNN",
    "OrthRNN",
    "Population",
    "Powers",
    "RandomFeatures",
    "Recurrent",
    "SecondOrderRNN",
    "SequenceNetwork",
    "SoftOrth",
    "Stack",
    "StackOptions",
    "WeightedAutomaton",
    "create",
    "get",
    "load",
    "names",
    "network",
    "save",
]
