"""Table of strangers' modules: how each looks, what is typed for it, and as what it must be read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stranger:
    """One module.

    Attributes
    ----------
    looks
        What it looks like, as the documentation says it.
    where
        Its place below this folder.
    kind
        As what it must be read: recurrent or sequence.
    state
        Real numbers in its state at 8 hidden units; 0: it has none.
    typed
        What is typed besides the size.
    """

    looks: str
    where: str
    kind: str
    state: int
    typed: str = ""


STRANGERS = [
    Stranger("`forward(x, h) -> h`, one step", "cells.py:Plain", "recurrent", 8),
    Stranger("`forward(x, (h, c)) -> (h, c)`", "cells.py:Tuple", "recurrent", 16),
    Stranger("`forward(x, h, c) -> (h, c)`", "cells.py:TwoArguments", "recurrent", 16),
    Stranger(
        "`forward(x, y, z) -> (y, z)`, and `dt`, `gamma`, `epsilon` to build it", "cells.py:Oscillator", "recurrent", 16
    ),
    Stranger("`forward(h, x) -> h`, state first", "cells.py:StateFirst", "recurrent", 8),
    Stranger("`forward(x, h) -> (y, h)`", "cells.py:OutputToo", "recurrent", 8),
    Stranger("`forward(x, h) -> (y, h, gate)`", "cells.py:Extra", "recurrent", 8),
    Stranger("a state that is a dict", "cells.py:Dictionary", "recurrent", 16),
    Stranger("a list of states, `layer_sizes` to build it", "cells.py:PerLayer", "recurrent", 8),
    Stranger("a list of states that it writes into", "cells.py:InPlace", "recurrent", 8),
    Stranger("states within states, `((h, c), (h, c))`", "cells.py:Nested", "recurrent", 32),
    Stranger("a matrix as state", "cells.py:Matrix", "recurrent", 64),
    Stranger("a complex state", "cells.py:Complex", "recurrent", 16),
    Stranger("`forward(x, h)`, and h becomes complex", "cells.py:RealZeros", "recurrent", 16),
    Stranger("a counter beside the state", "cells.py:Counter", "recurrent", 8),
    Stranger("`forward(x, h, ts)`, a time span besides", "cells.py:TimeSpans", "recurrent", 8),
    Stranger("no state at first: a learned one", "cells.py:Learned", "recurrent", 8),
    Stranger("a first state made by `init_hidden(batch)`", "cells.py:InitHidden", "recurrent", 8),
    Stranger("a first state that is drawn", "cells.py:RandomStart", "recurrent", 8),
    Stranger("one step, state (1, batch, n)", "cells.py:TimeAxis", "recurrent", 8),
    Stranger("two states of two widths", "cells.py:TwoWidths", "recurrent", 12),
    Stranger("a state (batch, units, n)", "cells.py:Modules", "recurrent", 64),
    Stranger("float32 only", "cells.py:Single", "recurrent", 8),
    Stranger("a custom autograd function inside", "cells.py:OwnBackward", "recurrent", 8),
    Stranger("a LayerNorm over the input", "cells.py:Normalised", "recurrent", 8),
    Stranger("a matrix that is computed once and kept", "cells.py:Refreshed", "recurrent", 8),
    Stranger("TorchScript", "cells.py:scripted", "recurrent", 8),
    Stranger("`forward(x, h=None) -> (y, h)`, whole sequences", "sequences.py:Encoder", "recurrent", 8),
    Stranger("a dict is returned", "sequences.py:AsDict", "recurrent", 8),
    Stranger("an object is returned", "sequences.py:AsObject", "recurrent", 8),
    Stranger("a loop over time by hand", "sequences.py:Loop", "recurrent", 16),
    Stranger("`return_state=True`", "sequences.py:ReturnState", "recurrent", 64),
    Stranger("`return_last_state=True`", "sequences.py:ReturnLastState", "recurrent", 64),
    Stranger("`return_next_prev_hidden=True`", "sequences.py:PrevHidden", "recurrent", 64),
    Stranger("`forward(x)`, and `step(x, state)`", "sequences.py:Step", "recurrent", 64),
    Stranger("`step(x, cache)` of a cache that a method allocates", "sequences.py:StepCache", "recurrent", 72),
    Stranger("`forward(x)`, and `forward_recurrent(x, s)`", "sequences.py:Recurrent", "recurrent", 64),
    Stranger("`forward(x)`, and `inference(x, state)`", "sequences.py:Inference", "recurrent", 64),
    Stranger("its state is kept on `self`", "sequences.py:KeptInside", "recurrent", 8),
    Stranger("many to one, a `.cell` inside", "sequences.py:Wrapped", "recurrent", 16),
    Stranger("many to one, no cell inside", "sequences.py:Answering", "sequence", 0),
    Stranger("`forward(x, mask, cache)`", "sequences.py:MaskAndCache", "recurrent", 8),
    Stranger("`forward(x, position, cache)`", "sequences.py:Positions", "recurrent", 8),
    Stranger("(batch, features, time)", "sequences.py:Channels", "sequence", 0),
    Stranger("reads batch first, answers time first", "sequences.py:Turned", "recurrent", 8),
    Stranger("attention, no state", "sequences.py:Attention", "sequence", 0),
    Stranger("one length only", "sequences.py:FixedLength", "sequence", 0, "--set seq_len=24 --length 24"),
    Stranger("a convolution by FFT", "sequences.py:Fourier", "sequence", 0),
    Stranger("bidirectional", "sequences.py:Both", "sequence", 0),
    Stranger("a config dataclass, relative imports", "project/models/recurrent.py:Configured", "recurrent", 8),
    Stranger("`args.hidden_size` of a namespace", "project/models/recurrent.py:Namespace", "recurrent", 8),
    Stranger("a script with a package that is not installed", "project/train.py:Net", "recurrent", 8),
    Stranger("`forward(x, h, t=1.0) -> (state, output)`", "wild.py:StateThenOutput", "recurrent", 8),
    Stranger("many to one, a cell of its own inside, `dt`, `gamma`, `epsilon`", "wild.py:Osc", "recurrent", 16),
    Stranger("`activation` to build it, a function or a name", "wild.py:NeedsActivation", "recurrent", 8),
    Stranger("`forward(x_t, input_t)`, and `x_t` is the state", "wild.py:Neurons", "recurrent", 8),
    Stranger("a reservoir: no parameters, tensors as attributes", "wild.py:Reservoir", "recurrent", 8),
    Stranger("an argument whose meaning nobody knows, `h: float`", "wild.py:StateFeatures", "recurrent", 16),
    Stranger("`init_hidden(input.shape)`", "wild.py:InputShapeInit", "recurrent", 8),
    Stranger("`init_sequence(batch)` first, then single steps", "wild.py:InitSequence", "recurrent", 16),
    Stranger("`forward_recurrent(x_n, s_n_1, n)`, the number of the step besides", "wild.py:IndexN", "recurrent", 64),
    Stranger("`forward(x, (h, c), time)`, `max_length` to build it", "wild.py:Time", "recurrent", 16),
    Stranger("`cell_class` to build it", "wild.py:CellClass", "recurrent", 8),
    Stranger("tokens in, an embedding inside", "wild.py:Awd", "recurrent", 16),
    Stranger("losses out", "wild.py:Losses", "recurrent", 8),
    Stranger("a memory beside the state, `memory_size`, `theta`", "wild.py:WithMemory", "recurrent", 40),
    Stranger("`forward(x, mask, delta)`, tensors as large as the input", "wild.py:Masked", "sequence", 0),
    Stranger("a dataclass with required fields, `vocab_size`", "wild.py:Selective", "sequence", 0),
    Stranger("`args` that no class of the file is, and `layer_id`", "wild.py:TimeMix", "sequence", 0),
    Stranger("TorchScript with a named tuple as state", "wild.py:ScriptCell", "recurrent", 16),
    Stranger("(batch, features, time) and a list of states", "wild.py:Stacked", "recurrent", 8),
    Stranger("options of argparse", "wild.py:Opt", "sequence", 0),
    Stranger("`forward(x, x_lens)`, which packs", "wild.py:PeepPacked", "sequence", 0),
    Stranger("`forward(obs, rnn_hxs, masks)` of an agent", "wild.py:FirstStep", "recurrent", 8),
    Stranger("(batch, features, time) -> (y, None)", "wild.py:TimeLast", "sequence", 0),
]
