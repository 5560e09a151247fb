"""Instruments: each takes a network or its matrices and returns a result. Nothing is trained.

A name is imported, with what it needs and nothing else, when it is first used. `names` lists the measures, `get` gives
one with what it takes, needs and costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mnemoscope.core.lazy import lazy

if TYPE_CHECKING:
    from mnemoscope.measures.attention_weights import *
    from mnemoscope.measures.capacity.memory import *
    from mnemoscope.measures.copying import *
    from mnemoscope.measures.cost.network import *
    from mnemoscope.measures.degree import *
    from mnemoscope.measures.dynamics import *
    from mnemoscope.measures.embedding import *
    from mnemoscope.measures.fisher.matrix import *
    from mnemoscope.measures.fisher.network import *
    from mnemoscope.measures.fisher.queue import *
    from mnemoscope.measures.fisher.vector import *
    from mnemoscope.measures.gradient_paths import *
    from mnemoscope.measures.gradients import *
    from mnemoscope.measures.hankel import *
    from mnemoscope.measures.inventory.state import *
    from mnemoscope.measures.lyapunov import *
    from mnemoscope.measures.machine_memory import *
    from mnemoscope.measures.outputs import *
    from mnemoscope.measures.parity.forms import *
    from mnemoscope.measures.parity.reference import *
    from mnemoscope.measures.rac_graph.contraction import *
    from mnemoscope.measures.rac_graph.cut import *
    from mnemoscope.measures.registry import *
    from mnemoscope.measures.relations import *
    from mnemoscope.measures.remembrance import *
    from mnemoscope.measures.separation.conjecture import *
    from mnemoscope.measures.separation.rank import *
    from mnemoscope.measures.separation.saturation import *
    from mnemoscope.measures.spectral.kreiss import *
    from mnemoscope.measures.spectral.matrix import *
    from mnemoscope.measures.spectral.pseudo import *
    from mnemoscope.measures.spectral.series import *
    from mnemoscope.measures.state_use import *
    from mnemoscope.measures.tensor_train.cores import *
    from mnemoscope.measures.tensor_train.cp import *
    from mnemoscope.measures.tensor_train.odd_even import *
    from mnemoscope.measures.tracking.gate import *
    from mnemoscope.measures.tracking.witness import *
    from mnemoscope.measures.weight_drift import *

_FILES = {
    "attention_weights": ("AttentionWeights", "attention"),
    "capacity.memory": ("MemoryCapacity", "memory_capacity"),
    "copying": ("CopyCapacity", "copy_capacity"),
    "cost.network": ("Resources", "resources"),
    "degree": ("PolynomialDegree", "polynomial_degree"),
    "dynamics": ("ROOM", "Dynamics"),
    "embedding": ("LatentEmbeddingOfNetwork", "latent_embedding"),
    "fisher.matrix": ("MatrixFisherMemory", "matrix_fisher_memory"),
    "fisher.network": ("NetworkFisherMemory", "network_fisher_memory"),
    "fisher.queue": ("QueueFisherMemory", "queue_fisher_memory"),
    "fisher.vector": ("FisherMemory", "fisher_memory"),
    "gradient_paths": ("AttentionPaths", "attention_kappa", "attention_paths", "dependency_depths"),
    "gradients": ("GradientNorms", "gradient_norms"),
    "hankel": ("HankelValues", "balanced_truncation", "hankel_singular_values"),
    "inventory.state": ("StateInventory", "state_inventory"),
    "lyapunov": ("LyapunovExponents", "lyapunov_exponents"),
    "machine_memory": ("MemoryUse", "memory_use"),
    "outputs": ("OutputMemory", "output_memory"),
    "parity.forms": ("ModeParity", "mode_parity"),
    "parity.reference": ("ReferenceParity", "reference_parity"),
    "rac_graph.contraction": ("contract_rac", "to_quimb"),
    "rac_graph.cut": ("FIGURES", "TensorNetwork", "tensor_network", "tensor_network_figure"),
    "registry": ("MEASURES", "Cost", "Measure", "get", "measure", "names"),
    "relations": (
        "EncoderGeometry",
        "RelationMatrix",
        "RelationalDependence",
        "encoder_geometry",
        "relation_matrix",
        "relational_dependence",
    ),
    "remembrance": ("EffectiveRemembrance", "effective_remembrance", "remembrance_lengths", "remembrance_of"),
    "separation.conjecture": ("SeparationConjecture", "separation_conjecture"),
    "separation.rank": ("SeparationRank", "separation_rank"),
    "separation.saturation": ("SeparationSaturation", "separation_saturation"),
    "spectral.kreiss": ("Kreiss", "kreiss_constant"),
    "spectral.matrix": ("Spectrum", "spectrum"),
    "spectral.pseudo": ("Pseudospectrum", "pseudospectrum"),
    "spectral.series": ("Spectra", "spectra"),
    "state_use": ("EffectiveStateSize", "effective_state_size"),
    "tensor_train.cores": ("tt_ranks",),
    "tensor_train.cp": ("CPRank", "cp_rank"),
    "tensor_train.odd_even": ("OddEvenRank", "odd_even_rank"),
    "tracking.gate": ("DYCK", "Exclusion", "TrackingGate", "tracking_gate"),
    "tracking.witness": ("StateTrackingWitness", "state_tracking_witness"),
    "weight_drift": ("Drift", "drift"),
}
"""The public names of each file. `tests/measures/test_registry.py` compares them with what the files export."""

_HOMES = {name: file for file, public in _FILES.items() for name in public}

__all__ = list(_HOMES)

__getattr__ = lazy(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
