"""Closed forms, bounds and constructions: plain functions of numbers and arrays."""

from mnemoscope.theory.attention import (
    attention_matrix,
    chain_attention,
    path_sums,
    sparse_attention_bound,
    uniform_attention,
    uniform_attention_constant,
    uniform_attention_exponent,
    uniform_attention_gradient,
)
from mnemoscope.theory.controllability import controllability_rank, reachable_units
from mnemoscope.theory.gradients import orthogonal_relu_bound, triangular_power, triangular_power_entry
from mnemoscope.theory.henaff_copy import HenaffCopy, henaff_copy
from mnemoscope.theory.matrix_fisher import (
    DynamicRangeBounds,
    SpaceTime,
    dynamic_range_bounds,
    matrix_fisher_bound,
    matrix_gaussian_kl,
    normal_matrix_fisher_curve,
    normal_matrix_fisher_total,
    space_time_matrices,
)
from mnemoscope.theory.memory_capacity import capacity_from_eigenvalues, delay_line_capacity, ring_capacity
from mnemoscope.theory.separation import (
    conjecture_bound,
    depth_two_rank,
    mc,
    separation_lower,
    separation_theorem,
    separation_upper,
    shallow_width,
)
from mnemoscope.theory.separation_weights import attaining_weights, conjecture_weights

__all__ = [
    "DynamicRangeBounds",
    "HenaffCopy",
    "SpaceTime",
    "attaining_weights",
    "attention_matrix",
    "capacity_from_eigenvalues",
    "chain_attention",
    "conjecture_bound",
    "conjecture_weights",
    "controllability_rank",
    "delay_line_capacity",
    "depth_two_rank",
    "dynamic_range_bounds",
    "henaff_copy",
    "matrix_fisher_bound",
    "matrix_gaussian_kl",
    "mc",
    "normal_matrix_fisher_curve",
    "normal_matrix_fisher_total",
    "orthogonal_relu_bound",
    "path_sums",
    "reachable_units",
    "ring_capacity",
    "separation_lower",
    "separation_theorem",
    "separation_upper",
    "shallow_width",
    "space_time_matrices",
    "sparse_attention_bound",
    "triangular_power",
    "triangular_power_entry",
    "uniform_attention",
    "uniform_attention_constant",
    "uniform_attention_exponent",
    "uniform_attention_gradient",
]
