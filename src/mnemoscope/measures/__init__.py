"""Instruments: each takes a network or its matrices and returns a result. Nothing is trained."""

from mnemoscope.measures.attention_paths import AttentionPaths, attention_paths
from mnemoscope.measures.conjecture_lab import ConjectureLab, conjecture_lab
from mnemoscope.measures.copy_capacity import CopyCapacity, copy_capacity
from mnemoscope.measures.cp_rank import CPRank, cp_rank
from mnemoscope.measures.dependency import attention_kappa, dependency_depths
from mnemoscope.measures.fisher import FisherMemory, fisher_memory
from mnemoscope.measures.gradients import GradientNorms, gradient_norms
from mnemoscope.measures.kreiss import Kreiss, kreiss_constant
from mnemoscope.measures.latent_embedding import LatentEmbeddingOfNetwork, latent_embedding
from mnemoscope.measures.lyapunov import LyapunovExponents, lyapunov_exponents
from mnemoscope.measures.matrix_fisher import MatrixFisherMemory, matrix_fisher_memory
from mnemoscope.measures.memory_capacity import MemoryCapacity, memory_capacity
from mnemoscope.measures.network_fisher import NetworkFisherMemory, network_fisher_memory
from mnemoscope.measures.odd_even_rank import OddEvenRank, odd_even_rank
from mnemoscope.measures.polynomial_degree import PolynomialDegree, polynomial_degree
from mnemoscope.measures.pseudospectrum import Pseudospectrum, pseudospectrum
from mnemoscope.measures.queue_fisher import QueueFisherMemory, queue_fisher_memory
from mnemoscope.measures.registry import MEASURES, Measure, get, measure, names
from mnemoscope.measures.resources import Resources, resources
from mnemoscope.measures.separation_rank import SeparationRank, separation_rank
from mnemoscope.measures.separation_saturation import SeparationSaturation, separation_saturation
from mnemoscope.measures.spectra import Spectra, spectra
from mnemoscope.measures.spectrum import Spectrum, spectrum
from mnemoscope.measures.state_tracking import StateTrackingWitness, state_tracking_witness
from mnemoscope.measures.tensor_network import FIGURES, TensorNetwork, tensor_network, tensor_network_figure
from mnemoscope.measures.tensor_network_contract import contract_rac, to_quimb
from mnemoscope.measures.tensor_train import tt_ranks

__all__ = [
    "FIGURES",
    "MEASURES",
    "AttentionPaths",
    "CPRank",
    "ConjectureLab",
    "CopyCapacity",
    "FisherMemory",
    "GradientNorms",
    "Kreiss",
    "LatentEmbeddingOfNetwork",
    "LyapunovExponents",
    "MatrixFisherMemory",
    "Measure",
    "MemoryCapacity",
    "NetworkFisherMemory",
    "OddEvenRank",
    "PolynomialDegree",
    "Pseudospectrum",
    "QueueFisherMemory",
    "Resources",
    "SeparationRank",
    "SeparationSaturation",
    "Spectra",
    "Spectrum",
    "StateTrackingWitness",
    "TensorNetwork",
    "attention_kappa",
    "attention_paths",
    "conjecture_lab",
    "contract_rac",
    "copy_capacity",
    "cp_rank",
    "dependency_depths",
    "fisher_memory",
    "get",
    "gradient_norms",
    "kreiss_constant",
    "latent_embedding",
    "lyapunov_exponents",
    "matrix_fisher_memory",
    "measure",
    "memory_capacity",
    "names",
    "network_fisher_memory",
    "odd_even_rank",
    "polynomial_degree",
    "pseudospectrum",
    "queue_fisher_memory",
    "resources",
    "separation_rank",
    "separation_saturation",
    "spectra",
    "spectrum",
    "state_tracking_witness",
    "tensor_network",
    "tensor_network_figure",
    "to_quimb",
    "tt_ranks",
]
