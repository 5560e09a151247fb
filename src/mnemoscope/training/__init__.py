"""Training: fit one network, fit many at once; every run recorded, and resumed bit for bit.

>>> import mnemoscope as ms
>>> run = ms.training.fit(ms.nn.RNN(10, 8), "copy", iterations=2, batch_size=4, test_size=4)
>>> run.status
'finished'
"""

from mnemoscope.core.intervals import wilson
from mnemoscope.core.seeds import stream
from mnemoscope.training.capacities.result import Capacity, compare_capacities
from mnemoscope.training.capacities.search import Search, capacity, take_turns
from mnemoscope.training.control import PPO, ppo
from mnemoscope.training.experiment import Experiment, read_experiment
from mnemoscope.training.family import family
from mnemoscope.training.fitting import Diverged, Run, fit
from mnemoscope.training.ladders import Ladder, ladder
from mnemoscope.training.memories import Remembering, remembering, remembering_of
from mnemoscope.training.model import Model, build_model
from mnemoscope.training.optimisers import Adam, RMSprop
from mnemoscope.training.options import Options
from mnemoscope.training.populations import fit_population
from mnemoscope.training.recalls import Recall, recall
from mnemoscope.training.resuming import resume
from mnemoscope.training.schedule import Plateau
from mnemoscope.training.snapshots import Snapshot, snapshots
from mnemoscope.training.state import Moment
from mnemoscope.training.statistics import compare_paired, holm
from mnemoscope.training.step import Step

__all__ = [
    "PPO",
    "Adam",
    "Capacity",
    "Diverged",
    "Experiment",
    "Ladder",
    "Model",
    "Moment",
    "Options",
    "Plateau",
    "RMSprop",
    "Recall",
    "Remembering",
    "Run",
    "Search",
    "Snapshot",
    "Step",
    "build_model",
    "capacity",
    "compare_capacities",
    "compare_paired",
    "family",
    "fit",
    "fit_population",
    "holm",
    "ladder",
    "ppo",
    "read_experiment",
    "recall",
    "remembering",
    "remembering_of",
    "resume",
    "snapshots",
    "stream",
    "take_turns",
    "wilson",
]
