"""Every network in the registry passes every check that anybody's network must pass."""

from functools import partial

import pytest

import mnemoscope as ms
from mnemoscope.testing import CHECKS, STATELESS_CHECKS, Skipped
from mnemoscope.testing.stateless import StatelessSubject

VARIANTS = {
    "rnn-depth": ("rnn", {"activation": "depth"}),
    "rnn-relu": ("rnn", {"nonlinearity": "relu"}),
    "rnn-modrelu": ("rnn", {"nonlinearity": "modrelu"}),
    "rnn-identity": ("rnn", {"nonlinearity": "identity"}),
    "rnn-no-bias": ("rnn", {"bias": False}),
    "henaff-modrelu": ("henaff", {"nonlinearity": "modrelu"}),
    "lstm-no-bias": ("lstm", {"bias": False}),
    "gru-no-bias": ("gru", {"bias": False}),
    "goru-no-bias": ("goru", {"bias": False}),
    "h-detach-lstm-no-bias": ("h-detach-lstm", {"bias": False}),
    "nnrnn-balanced": ("nnrnn", {"block": "balanced"}),
    "nnrnn-published": ("nnrnn", {"block": "published"}),
    "nnrnn-free": ("nnrnn", {"gamma": "free"}),
    "nnrnn-clamped": ("nnrnn", {"gamma": "clamped"}),
    "nnrnn-tanh": ("nnrnn", {"nonlinearity": "tanh"}),
    "full-urnn-complex": ("full-urnn", {"field": "complex"}),
    "exprnn-complex": ("exprnn", {"field": "complex"}),
    "exprnn-complex-depth": ("exprnn", {"field": "complex", "activation": "depth", "nonlinearity": "tanh"}),
    "exprnn-rebase": ("exprnn", {"rebase": 2}),
    "exprnn-complex-rebase": ("exprnn", {"field": "complex", "rebase": 2}),
    "soft-orth-penalty": ("soft-orth", {"mode": "penalty"}),
    "soft-orth-spectral": ("soft-orth", {"mode": "penalty", "norm": "spectral"}),
    "ornn-structured": ("ornn", {"product": "structured"}),
    "ornn-few": ("ornn", {"product": "structured", "reflections": 1}),
    "eurnn-structured": ("eurnn", {"product": "structured"}),
    "eurnn-few": ("eurnn", {"product": "structured", "rotations": 1}),
    "urnn-structured": ("urnn", {"product": "structured"}),
    "scurnn-no-bias": ("scurnn", {"bias": False}),
    "urnn-relu": ("urnn", {"nonlinearity": "relu"}),
    "rac-readout": ("rac", {"output_size": 2, "learn_initial": True}),
    "rac-one-hot": ("rac", {"init": "one-hot"}),
    "mirnn-identity": ("mirnn", {"nonlinearity": "identity"}),
    "mirnn-modrelu": ("mirnn", {"nonlinearity": "modrelu"}),
    "mirnn-no-bias": ("mirnn", {"bias": False}),
    "2rnn-identity": ("2rnn", {"nonlinearity": "identity"}),
    "2rnn-relu": ("2rnn", {"nonlinearity": "relu"}),
    "2rnn-no-bias": ("2rnn", {"bias": False}),
    "birnn-residual": ("birnn", {"residual": True}),
    "birnn-learned": ("birnn", {"output_size": 2, "learn_initial": True}),
    "cprnn-rank": ("cprnn", {"rank": 2, "bias": False}),
    "cprnn-modrelu": ("cprnn", {"nonlinearity": "modrelu"}),
    "lru-block": ("lru", {"block": True}),
    "mingru-block": ("mingru", {"block": True}),
    "gated-deltanet-block": ("gated-deltanet", {"block": True, "negative_eigenvalues": True}),
    "transformer-positions": ("transformer", {"block": True, "positions": 64}),
    "matrixrnn-layers": ("matrixrnn", {"nonlinearity": "relu", "bias": False}),
    "matrix-queue-tanh": ("matrix-queue", {"queue": (0.3, 0.1), "nonlinearity": "tanh"}),
    "ntm-heads": (
        "ntm",
        {"memory": (4, 2), "controller": "feed-forward", "read_heads": 2, "write_heads": 2, "output_size": 2},
    ),
    "matntm-lstm": ("matntm", {"memory": (3, 2, 2), "controller": "lstm", "read_heads": 2, "focus": "learned"}),
    "relrnn-concat": ("relrnn", {"buffer": 2, "relevant": 1, "combine": "concat", "alignment": "dot"}),
    "relrnn-recency": ("relrnn", {"buffer": 2, "relevant": 1, "screening": "recency", "readout": "h"}),
    "rellstm-no-bias": ("rellstm", {"buffer": 2, "relevant": 2, "bias": False, "combine": "mean"}),
    "cpbirnn-rank": ("cpbirnn", {"rank": 2, "residual": True, "learn_initial": True}),
}

SMALL = {
    name: {"order": 4} for name in ("mamba", "mamba2", "s4", "s4d")
}  # finite differences take each number of a state
# Without these options it does nothing in sequences as short as those of the checks.
SMALL |= {"sab": {"every": 1, "best": 2, "truncate": 2}}
SMALL |= {"ntm": {"memory": (3, 2)}, "matntm": {"memory": (3, 2, 2)}}
FACTORIES = {name: partial(ms.nn.get(name), **SMALL.get(name, {})) for name in ms.nn.names("recurrent")}
FACTORIES |= {variant: partial(ms.nn.get(name), **options) for variant, (name, options) in VARIANTS.items()}

COMPLEX = {
    "lru",
    "s4",
    "s4d",
    "lru-block",
    "urnn",
    "urnn-relu",
    "urnn-structured",
    "scurnn",
    "scurnn-no-bias",
    "full-urnn-complex",
}
COMPLEX |= {variant for variant in VARIANTS if variant.startswith("exprnn-complex")}

# Compiling is the slowest check: of the variants, those whose code differs from that of the network without options.
COMPILED = {
    "birnn-residual",
    "rac-readout",
    "rnn-depth",
    "exprnn-complex",
    "ornn-structured",
    "eurnn-structured",
    "urnn-structured",
}

# What an option can break. Calling forms, copies, chance and bad input are the code of the network without options.
OPTIONS = {
    "check_batched",
    "check_bidirectional",
    "check_bfloat16",
    "check_chunked",
    "check_deepcopy",
    "check_gradient_input",
    "check_gradient_packed",
    "check_gradient_parameters",
    "check_gradient_state",
    "check_modes",
    "check_packed",
    "check_packed_bidirectional",
    "check_safetensors",
    "check_step",
    "check_training_step",
    "check_vmap_gradients",
}


def applies(name, check):
    if check.__name__ == "check_modes":
        return len(FACTORIES[name].func.modes) > 1
    cls = FACTORIES[name].func
    if check.__name__ == "check_small_sizes" and not isinstance(cls.small_sizes["hidden_size"], int):
        return False
    if check.__name__ == "check_input_width" and cls.input_axes > 1:
        return False
    if name not in VARIANTS:
        return True
    return check.__name__ in OPTIONS or (check.__name__ == "check_compile" and name in COMPILED)


QUICKLY_EXPORTED = ("rnn", "exprnn", "lstm", "lru", "gla", "relrnn")


def tier(name, check):
    """Exporting takes a second each: of all networks in the slow tier."""
    return [pytest.mark.slow] if check.__name__ == "check_export" and name not in QUICKLY_EXPORTED else []


# One test for each theme: a failure names every check of it that a network fails.
THEMES = {}
for _name in FACTORIES:
    for _check in CHECKS:
        if applies(_name, _check):
            _alone = _check.__name__ in ("check_compile", "check_export")
            _theme = _check.__name__ if _alone else _check.__module__.rpartition(".")[2]
            THEMES.setdefault((_name, "options" if _name in VARIANTS and not _alone else _theme), []).append(_check)


@pytest.mark.parametrize(
    ("name", "checks"),
    [
        pytest.param(name, checks, id=f"{name}-{theme}", marks=tier(name, checks[0]))
        for (name, theme), checks in THEMES.items()
    ],
)
def test_network_keeps_the_contract(name, checks, every):
    every({check.__name__: check for check in checks}, lambda check: keeps(name, check))


def keeps(name, check):
    """Nothing may be skipped, but bfloat16 of complex numbers."""
    if name in COMPLEX and check.__name__ == "check_bfloat16":
        with pytest.raises(Skipped, match="must be float32 or float64"):
            check(FACTORIES[name])
    else:
        check(FACTORIES[name])


CLASSIFIERS = {name: ms.nn.get(name) for name in ms.nn.names("classifier")} | {
    "tt-equal": partial(ms.nn.TT, cores="equal"),
    "tt-mapped": partial(ms.nn.TT, feature_map={"name": "polynomial", "input_size": 2, "degree": 1}),
    "cp-mapped": partial(ms.nn.CP, feature_map={"name": "polynomial", "input_size": 2, "degree": 1}),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier_keeps_the_contract(name, every):
    def keeps(check):
        if check.__name__ == "check_answers_causal":
            with pytest.raises(Skipped, match="answers once"):
                check(StatelessSubject(CLASSIFIERS[name]))
        else:
            check(StatelessSubject(CLASSIFIERS[name]))

    every({check.__name__: check for check in STATELESS_CHECKS}, keeps)


def test_every_failure_is_named(every):
    def odd(number):
        assert number % 2

    with pytest.raises(ExceptionGroup, match="2 of 3 fail") as raised:
        every({"one": 1, "two": 2, "four": 4}, odd)
    assert [error.__notes__ for error in raised.value.exceptions] == [["of two"], ["of four"]]
