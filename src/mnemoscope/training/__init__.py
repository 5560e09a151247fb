"""Training: fit one network, fit many at once; every run recorded, and resumed bit for bit.

>>> import mnemoscope as ms
>>> run = ms.training.fit(ms.nn.RNN(10, 8), "copy", iterations=2, batch_size=4, test_size=4)
>>> run.status
'finished'
"""

from mnemoscope.training.experiment import Experiment, read_experiment
from mnemoscope.training.fit import fit
from mnemoscope.training.loop import Moment
from mnemoscope.training.model import Model, build_model
from mnemoscope.training.optimisers import Adam, RMSprop
from mnemoscope.training.options import Options
from mnemoscope.training.population import fit_population
from mnemoscope.training.resuming import resume
from mnemoscope.training.run import Diverged, Run
from mnemoscope.training.schedule import Plateau
from mnemoscope.training.seeds import stream
from mnemoscope.training.step import Step

__all__ = [
    "Adam",
    "Diverged",
    "Experiment",
    "Model",
    "Moment",
    "Options",
    "Plateau",
    "RMSprop",
    "Run",
    "Step",
    "build_model",
    "fit",
    "fit_population",
    "read_experiment",
    "resume",
    "stream",
]
