"""Tasks: problems that a network must remember something to solve."""

from mnemoscope.tasks import relational
from mnemoscope.tasks.adding import Adding
from mnemoscope.tasks.base import Evaluation, Task
from mnemoscope.tasks.batch import Batch, Splits
from mnemoscope.tasks.copying import Copy, Copying, Denoise, SelectiveCopy, TransferCopy
from mnemoscope.tasks.dyck import Dyck
from mnemoscope.tasks.group_composition import GroupComposition
from mnemoscope.tasks.matrices import MatrixCopy, MatrixRecall
from mnemoscope.tasks.mnist import MNIST, PermutedMNIST, SequentialMNIST
from mnemoscope.tasks.mqar import MQAR
from mnemoscope.tasks.registry import create, get, names, task
from mnemoscope.tasks.signals import CopySinus, LagCopy, Parity, Sinus
from mnemoscope.tasks.similarity import StartEndSimilarity
from mnemoscope.tasks.text import PennTreebank, Shakespeare

__all__ = [
    "MNIST",
    "MQAR",
    "Adding",
    "Batch",
    "Copy",
    "CopySinus",
    "Copying",
    "Denoise",
    "Dyck",
    "Evaluation",
    "GroupComposition",
    "LagCopy",
    "MatrixCopy",
    "MatrixRecall",
    "Parity",
    "PennTreebank",
    "PermutedMNIST",
    "SelectiveCopy",
    "SequentialMNIST",
    "Shakespeare",
    "Sinus",
    "Splits",
    "StartEndSimilarity",
    "Task",
    "TransferCopy",
    "create",
    "get",
    "names",
    "relational",
    "task",
]
