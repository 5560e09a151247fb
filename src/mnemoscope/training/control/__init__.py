"""Training in environments: recurrent proximal policy optimisation."""

from mnemoscope.training.control.advantage import advantages
from mnemoscope.training.control.learning import ppo
from mnemoscope.training.control.settings import PPO

__all__ = ["PPO", "advantages", "ppo"]
