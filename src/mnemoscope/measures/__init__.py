"""Instruments: each takes a network or its matrices and returns a result. Nothing is trained."""

from mnemoscope.measures.attention import AttentionPaths, attention_kappa, attention_paths, dependency_depths
from mnemoscope.measures.capacity.memory import MemoryCapacity, memory_capacity
from mnemoscope.measures.copying import CopyCapacity, copy_capacity
from mnemoscope.measures.cost.network import Resources, resources
from mnemoscope.measures.degree import PolynomialDegree, polynomial_degree
from mnemoscope.measures.embedding import LatentEmbeddingOfNetwork, latent_embedding
from mnemoscope.measures.fisher.matrix import MatrixFisherMemory, matrix_fisher_memory
from mnemoscope.measures.fisher.network import NetworkFisherMemory, network_fisher_memory
from mnemoscope.measures.fisher.queue import QueueFisherMemory, queue_fisher_memory
from mnemoscope.measures.fisher.vector import FisherMemory, fisher_memory
from mnemoscope.measures.gradients import GradientNorms, gradient_norms
from mnemoscope.measures.lyapunov import LyapunovExponents, lyapunov_exponents
from mnemoscope.measures.rac_graph.contraction import contract_rac, to_quimb
from mnemoscope.measures.rac_graph.measure import FIGURES, TensorNetwork, tensor_network, tensor_network_figure
from mnemoscope.measures.registry import MEASURES, Measure, get, measure, names
from mnemoscope.measures.relations import (
    EncoderGeometry,
    RelationalDependence,
    RelationMatrix,
    encoder_geometry,
    relation_matrix,
    relational_dependence,
)
from mnemoscope.measures.separation.conjecture import ConjectureLab, conjecture_lab
from mnemoscope.measures.separation.rank import SeparationRank, separation_rank
from mnemoscope.measures.separation.saturation import SeparationSaturation, separation_saturation
from mnemoscope.measures.spectral.kreiss import Kreiss, kreiss_constant
from mnemoscope.measures.spectral.matrix import Spectrum, spectrum
from mnemoscope.measures.spectral.pseudo import Pseudospectrum, pseudospectrum
from mnemoscope.measures.spectral.series import Spectra, spectra
from mnemoscope.measures.tensor_train.cores import tt_ranks
from mnemoscope.measures.tensor_train.cp import CPRank, cp_rank
from mnemoscope.measures.tensor_train.odd_even import OddEvenRank, odd_even_rank
from mnemoscope.measures.tracking import StateTrackingWitness, state_tracking_witness

__all__ = [
    "FIGURES",
    "MEASURES",
    "AttentionPaths",
    "CPRank",
    "ConjectureLab",
    "CopyCapacity",
    "EncoderGeometry",
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
    "RelationMatrix",
    "RelationalDependence",
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
    "encoder_geometry",
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
    "relation_matrix",
    "relational_dependence",
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
