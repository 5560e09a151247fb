"""Networks with one thing wrong each: what the checks are there to find.

`BROKEN` pairs the check that must find it with the network and words of the sentence that must come.
"""

import copy

import numpy as np
import torch
from third_party_networks import Leaky, Spiral, SpiralState
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

import mnemoscope as ms

BROKEN = []


def caught_by(check, words):
    def file(factory):
        BROKEN.append((check, factory, words))
        return factory

    return file


class TwiceBackward(torch.autograd.Function):
    """The identity, with a gradient twice too large."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


# Calling forms


@caught_by("check_batched", "return the pair (output, hx) from forward")
class OutputOnly(Leaky):
    def forward(self, input, hx=None):
        return super().forward(input, hx)[0]


@caught_by("check_batched", "return output of shape (5, 3, features), not (3, 5, 4)")
class TurnsOutput(Leaky):
    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return y.transpose(0, 1), h


@caught_by("check_batched", "set batch_axis = 1, where the batch stands in hx, instead of 0")
class WrongBatchAxis(Leaky):
    batch_axis = 0


@caught_by("check_batched", "keep the batch at one common axis")
class OneStateForAll(Leaky):
    def forward(self, input, hx=None):
        y, h = super().forward(input)
        return y, h.mean(1)


@caught_by("check_batched", "return a torch.nn.Module from the factory, not dict")
def builds_no_module(input_size, hidden_size):
    return {"input_size": input_size, "hidden_size": hidden_size}


@caught_by("check_batched", "this one says that it is 'sequence'")
class OtherKind(Leaky):
    kind = "sequence"


@caught_by("check_output_size", "set output_size to the width that it is, 4, instead of 5")
class WrongOutputSize(Leaky):
    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        self.output_size = hidden_size + 1


@caught_by("check_output_size", "give the network an attribute output_size, here 4")
class NoOutputSize(Leaky):
    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        del self.output_size


@caught_by("check_unbatched", "make output and state of unbatched input those of a batch of one")
class KeepsBatchOfOne(Leaky):
    def forward(self, input, hx=None):
        if isinstance(input, torch.Tensor) and input.dim() == 2:
            return super().forward(input.unsqueeze(1), hx if hx is None else hx.unsqueeze(1))
        return super().forward(input, hx)


@caught_by("check_batch_first", "keep batch_first as an attribute")
class ForgetsBatchFirst(Leaky):
    def __init__(self, input_size, hidden_size, batch_first=False):
        super().__init__(input_size, hidden_size)


@caught_by("check_batch_first", "exchange the first two axes")
class IgnoresBatchFirst(Leaky):
    def __init__(self, input_size, hidden_size, batch_first=False):
        super().__init__(input_size, hidden_size)
        self.batch_first = batch_first


@caught_by("check_layers", "here 2 rows")
class StateOfLastLayer(Leaky):
    def __init__(self, input_size, hidden_size, num_layers=1):
        super().__init__(input_size, hidden_size)


@caught_by("check_bidirectional", "concatenate both directions to an output of width 8, not 4")
class AddsDirections(ms.nn.RNN):
    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return (y.unflatten(-1, (2, -1)).sum(-2) if self.bidirectional else y), h


@caught_by("check_small_shapes", "batches of one and of none")
class NeedsExamples(Leaky):
    def prepare(self, x):
        return x / x.abs().max()


@caught_by("check_small_shapes", "return output of shape (5, 1, features), not (5, 4)")
class SqueezesBatch(Leaky):
    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return (y.squeeze(1) if isinstance(y, torch.Tensor) else y), h


@caught_by("check_small_sizes", "return (time, batch, features)")
class SqueezesAll(Leaky):
    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return y.transpose(0, 1).squeeze(), h


# One function of a sequence


@caught_by("check_repeatable", "keep no state in the network between two calls")
class Remembers(Leaky):
    kept = None

    def forward(self, input, hx=None):
        y, self.kept = super().forward(input, self.kept if hx is None else hx)
        return y, self.kept


@caught_by("check_repeatable", "no chance in evaluation")
class NoisyAlways(Leaky):
    def prepare(self, x):
        return x + torch.randn_like(x)


@caught_by("check_inputs_kept", "do not change input or hx in place")
class WritesIntoInput(Leaky):
    def prepare(self, x):
        return x.mul_(0.5)


@caught_by("check_chunked", "start from the hx that comes in")
class IgnoresState(Leaky):
    def begin(self, x, hx, batch):
        return super().begin(x, None, batch)


@caught_by("check_chunked", "start from the hx that comes in")
class ReturnsFirstState(Leaky):
    def unroll(self, x, h, lengths=None):
        return super().unroll(x, h, lengths)[0], super().unroll(x[:1], h, lengths)[1]


@caught_by("check_init_state", "start from init_state when no hx is given")
class StartsElsewhere(Leaky):
    def init_state(self, batch):
        return torch.ones(1, batch, self.hidden_size)


@caught_by("check_init_state", "of the shapes and types of the state")
class StartsInOtherShape(Leaky):
    def init_state(self, batch):
        return torch.zeros(batch, self.hidden_size)


@caught_by("check_step", "make step by step the same function as forward")
class StepForgetsBias(ms.nn.RNN):
    def step(self, x, state, weights=None):
        y, state = super().step(x, state, weights)
        return y - 0.1, state


@caught_by("check_step", "make step by step the same function as forward")
class StepCounts(Spiral):
    calls = 0

    def step(self, x, state):
        self.calls += 1
        y, state = super().step(x, state)
        return y * (1 + self.calls % 2), state


@caught_by("check_one_by_one", "keep the examples of a batch apart")
class NormalisesOverBatch(Leaky):
    def prepare(self, x):
        return x - x.mean(1, keepdim=True)


@caught_by("check_causal", "let no output depend on later inputs")
class ReadsTheFuture(Leaky):
    def prepare(self, x):
        return x - x.mean(0)


@caught_by("check_causal", "carry what came before in the state")
class HasNoMemory(Leaky):
    def unroll(self, x, h, lengths=None):
        y = x @ self.inward.mT
        return y, y[-1:]


@caught_by("check_noncontiguous", "contiguous")
class Views(Leaky):
    def prepare(self, x):
        return x.view(-1, self.input_size).view(x.shape)


# PackedSequence


@caught_by("check_packed", "return a PackedSequence when a PackedSequence comes in")
class Unpacks(Leaky):
    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return (pad_packed_sequence(y)[0] if isinstance(y, PackedSequence) else y), h


@caught_by("check_packed", "let padding touch no output")
class CountsPadding(Leaky):
    def prepare(self, x):
        return x - x.mean(0)


@caught_by("check_packed_full", "same packed as in a tensor")
class ScalesPacked(Leaky):
    def run_packed(self, packed, hx):
        return super().run_packed(PackedSequence(packed.data * 1.1, *packed[1:]), hx)


@caught_by("check_packed_unsorted", "keep the caller's order")
class SortsAndForgets(Leaky):
    def run_packed(self, packed, hx):
        y, h = super().run_packed(packed, hx)
        return y, h if packed.sorted_indices is None else h[:, packed.sorted_indices]


@caught_by("check_packed_state", "the state at each sequence's own end")
class RunsThroughPadding(Leaky):
    def unroll(self, x, h, lengths=None):
        return super().unroll(x, h)


@caught_by("check_packed_bidirectional", "start the reverse direction of every packed sequence at its own last input")
class ReversesPadding(ms.nn.RNN):
    def run(self, x, state, lengths):
        return super().run(x, state, None)


# Gradients


@caught_by("check_gradient_input", "correct the gradient with respect to the input")
class WrongInputGradient(Leaky):
    def prepare(self, x):
        return TwiceBackward.apply(x)


@caught_by("check_gradient_input", "let the gradient reach the input")
class DetachesInput(Leaky):
    def prepare(self, x):
        return x.detach()

    def matrices(self):
        return tuple(matrix.detach() for matrix in super().matrices())


@caught_by("check_gradient_state", "correct the gradient with respect to hx")
class WrongStateGradient(Leaky):
    def begin(self, x, hx, batch):
        return TwiceBackward.apply(super().begin(x, hx, batch))


@caught_by("check_gradient_state", "correct the gradient with respect to hx")
class WrongComplexGradient(Spiral):
    def step(self, x, state):
        return super().step(x, SpiralState(TwiceBackward.apply(state.z), state.count))


@caught_by("check_gradient_parameters", "correct the gradient with respect to the parameter recurrent")
class WrongParameterGradient(Leaky):
    def matrices(self):
        return self.inward, TwiceBackward.apply(self.recurrent), self.bias


@caught_by("check_gradient_packed", "correct the gradient with respect to the data of a PackedSequence")
class WrongPackedGradient(Leaky):
    def run_packed(self, packed, hx):
        return super().run_packed(PackedSequence(TwiceBackward.apply(packed.data), *packed[1:]), hx)


# Types


@caught_by("check_float64", "return torch.float64 after double(), not torch.float32")
class AlwaysSingle(Leaky):
    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return y.float(), h


@caught_by("check_float64", "create every tensor in forward in the type of the parameters")
class StartsInSingle(Leaky):
    def begin(self, x, hx, batch):
        return super().begin(x, hx, batch).float()


@caught_by("check_dtype_option", "build inward in the type that dtype= says")
class IgnoresDtype(Leaky):
    def __init__(self, input_size, hidden_size, dtype=None):
        super().__init__(input_size, hidden_size)


@caught_by("check_bfloat16", "run in bfloat16, or refuse it with a ValueError of one line")
class SolvesInAnyType(Leaky):
    def matrices(self):
        inward, recurrent, bias = super().matrices()
        return inward, torch.linalg.solve(torch.eye(len(bias), dtype=bias.dtype), recurrent), bias


@caught_by("check_bfloat16", "compute what needs digits in float32")
class LosesDigits(Leaky):
    def matrices(self):
        inward, recurrent, bias = super().matrices()
        return inward, recurrent + 1000 - 1000, bias


# Chance


@caught_by("check_generator", "so that one seed gives one network")
class IgnoresGenerator(Leaky):
    def __init__(self, input_size, hidden_size, generator=None):
        super().__init__(input_size, hidden_size)


@caught_by("check_generator", "draw nothing from torch's global generator")
class DrawsTwice(Spiral):
    def reset_parameters(self, generator=None):
        super().reset_parameters(generator)
        torch.rand(1)


@caught_by("check_generator", "so that another seed gives another")
class FixedGenerator(Spiral):
    def reset_parameters(self, generator=None):
        super().reset_parameters(torch.Generator().manual_seed(0))


@caught_by("check_global_seed", "draw every initial value with torch")
class DrawsWithNumpy(Leaky):
    def reset_parameters(self):
        for parameter in self.parameters():
            parameter.data.copy_(torch.from_numpy(np.random.default_rng().uniform(-1, 1, parameter.shape)))


@caught_by("check_global_seed", "draw the initial values at random")
class StartsConstant(Leaky):
    def reset_parameters(self):
        for parameter in self.parameters():
            nn.init.constant_(parameter, 0.3)


@caught_by("check_reset_parameters", "give the network a method reset_parameters()")
class CannotReset(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.inner = nn.RNN(input_size, hidden_size)

    def forward(self, input, hx=None):
        return self.inner(input, hx)


@caught_by("check_reset_parameters", "draw the parameter bias anew")
class ForgetsBias(Leaky):
    def reset_parameters(self):
        nn.init.uniform_(self.inward)
        nn.init.uniform_(self.recurrent)


@caught_by("check_reset_parameters", "change parameters in place in reset_parameters()")
class ReplacesOnReset(Leaky):
    def reset_parameters(self):
        self.bias = nn.Parameter(torch.zeros(self.hidden_size))
        super().reset_parameters()


@caught_by("check_reset_parameters", "draw new values each time")
class ResetsToOneSeed(Leaky):
    def reset_parameters(self):
        generator = torch.Generator().manual_seed(0)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, generator=generator)


@caught_by("check_reset_parameters", "draw every value from the generator")
class ResetIgnoresGenerator(Spiral):
    def reset_parameters(self, generator=None):
        super().reset_parameters()


# Training


@caught_by("check_training_step", "use the parameter spare in forward")
class SpareParameter(Leaky):
    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        self.spare = nn.Parameter(torch.zeros(1))


@caught_by("check_training_step", "compute recurrent from its parameters at every call")
class CachedMap(Leaky):
    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        nn.utils.parametrize.register_parametrization(self, "recurrent", Cached())


class Cached(nn.Module):
    kept = None

    def forward(self, weight):
        self.kept = weight.clone() if self.kept is None else self.kept + 0 * weight.sum().detach()
        return self.kept + 1e-12 * weight.sum()


@caught_by("check_training_step", "compute the output from the parameters at every call")
class CachedWeights(Leaky):
    kept = None

    def matrices(self):
        if self.kept is None:
            self.kept = tuple(matrix.detach().clone() for matrix in super().matrices())
        zero = sum(matrix.sum() for matrix in super().matrices())
        return tuple(matrix + (zero - zero.detach()) for matrix in self.kept)


@caught_by("check_training_step", "register what is learned as torch.nn.Parameter")
class NothingRegistered(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.inner = [Leaky(input_size, hidden_size)]

    def forward(self, input, hx=None):
        return self.inner[0](input, hx)


@caught_by("check_after_step", "change parameters in place in after_step()")
class ReplacesAfterStep(Leaky):
    def after_step(self):
        self.recurrent = nn.Parameter(self.recurrent.detach().clamp(-1, 1))


@caught_by("check_after_step", "keep outputs and states finite")
class ExplodesAfterStep(Leaky):
    def after_step(self):
        self.bias.data.div_(0)
        self.bias.data.sub_(self.bias.data)


@caught_by("check_after_step", "keep requires_grad of parameters")
class FreezesAfterStep(Leaky):
    def after_step(self):
        self.bias.requires_grad_(False)


@caught_by("check_penalty", "return a tensor of shape () from penalty()")
class PenaltyPerUnit(Leaky):
    def penalty(self):
        return self.bias.square()


@caught_by("check_penalty", "return penalty() in the network's type")
class PenaltyInDouble(Leaky):
    def penalty(self):
        return self.bias.double().square().sum()


@caught_by("check_penalty", "keep penalty() finite")
class EndlessPenalty(Leaky):
    def penalty(self):
        return self.bias.square().sum() / 0


@caught_by("check_parameter_groups", "put every parameter into exactly one group")
class GroupsForgetBias(Leaky):
    def parameter_groups(self, lr, lr_orthogonal=None):
        return [{"params": [self.inward, self.recurrent], "lr": lr}]


@caught_by("check_parameter_groups", "one of these rates, not 0.3")
class GroupsWithOwnRate(Leaky):
    def parameter_groups(self, lr, lr_orthogonal=None):
        return [{"params": list(self.parameters()), "lr": 0.3}]


@caught_by("check_dropout", "leave dropout out in evaluation")
class DropsInEvaluation(ms.nn.RNN):
    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return nn.functional.dropout(y, self.dropout), h


@caught_by("check_dropout", "apply dropout between layers in training")
class NeverDrops(ms.nn.RNN):
    def _drop(self, x):
        return x


@caught_by("check_dropout", "never to the output of the last layer")
class DropsLastLayer(ms.nn.RNN):
    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return nn.functional.dropout(y, self.dropout, self.training), h


@caught_by("check_dropout", "never to the output of the last layer")
class DropsLastOfSeveral(ms.nn.RNN):
    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return nn.functional.dropout(y, self.dropout, self.training and self.num_layers > 1), h


# Copies


@caught_by("check_state_dict", "the output changes")
class HiddenTensor(Leaky):
    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        self.mask = torch.rand(input_size)

    def prepare(self, x):
        return x * self.mask


@caught_by("check_deepcopy", "parameters and buffers of its own")
class SharesOnCopy(Leaky):
    def __deepcopy__(self, memo):
        twin = type(self)(self.input_size, self.hidden_size)
        for name, parameter in self.named_parameters():
            setattr(twin, name, parameter)
        return twin.eval()


@caught_by("check_deepcopy", "keep requires_grad of every parameter through copy.deepcopy")
class ThawsOnCopy(Leaky):
    def __deepcopy__(self, memo):
        twin = copy.copy(self)
        twin._parameters = {name: nn.Parameter(p.detach().clone()) for name, p in self._parameters.items()}
        return twin


@caught_by("check_deepcopy", "let copy.deepcopy give the same function")
class NewOnCopy(Leaky):
    def __deepcopy__(self, memo):
        return type(self)(self.input_size, self.hidden_size).eval()


@caught_by("check_pickle", "let pickle.dumps and pickle.loads carry the network")
class HoldsLambda(Leaky):
    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        self.function = lambda x: x


def rebuild_in_training(cls, sizes, weights):
    network = cls(*sizes)
    network.load_state_dict(weights)
    return network


@caught_by("check_pickle", "keep the mode, training or evaluation")
class PicklesInTraining(Leaky):
    def __reduce__(self):
        return rebuild_in_training, (type(self), (self.input_size, self.hidden_size), self.state_dict())


def rebuild_thawed(cls, sizes, weights):
    return rebuild_in_training(cls, sizes, weights).eval()


@caught_by("check_pickle", "keep requires_grad of every parameter through pickle")
class PicklesThawed(Leaky):
    def __reduce__(self):
        return rebuild_thawed, (type(self), (self.input_size, self.hidden_size), self.state_dict())


def rebuild_by_chance(cls, sizes, weights):
    network = rebuild_thawed(cls, sizes, weights)
    next(network.parameters()).requires_grad_(False)
    return network


@caught_by("check_pickle", "draw nothing from torch's global generator in unpickling")
class PicklesByChance(Leaky):
    def __reduce__(self):
        return rebuild_by_chance, (type(self), (self.input_size, self.hidden_size), self.state_dict())


@caught_by("check_safetensors", "none in another's memory")
class TiedTensors(Leaky):
    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        self.tied = self.recurrent


# torch.func and torch.compile


@caught_by("check_functional_call", "never from a copy")
class HoldsWeightsInList(Leaky):
    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        self.held = [self.inward, self.recurrent, self.bias]

    def matrices(self):
        return self.held


@caught_by("check_vmap_parameters", "no decision on values of tensors")
class DecidesOnWeights(Leaky):
    def matrices(self):
        return super().matrices() if self.bias.sum() > 0 else (self.inward, self.recurrent, self.bias * 1)


@caught_by("check_vmap_parameters", "give what a loop gives")
class AsksForTransform(Leaky):
    def matrices(self):
        inward, recurrent, bias = super().matrices()
        return inward, recurrent, bias + (1 if torch._C._functorch.is_batchedtensor(bias) else 0)


@caught_by("check_vmap_inputs", "no decision on values of tensors")
class DecidesOnInput(Leaky):
    def prepare(self, x):
        return x if x.sum() > 0 else x * 1


class NoBatchingRule(torch.autograd.Function):
    """The identity, whose backward cannot be batched."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return gradient if gradient.sum() > 0 else gradient * 1


@caught_by("check_vmap_gradients", "write backward so that torch.func.vmap can batch it too")
class DecidesInBackward(Leaky):
    def matrices(self):
        inward, recurrent, bias = super().matrices()
        return inward, NoBatchingRule.apply(recurrent), bias


@caught_by("check_flatten_state", "return one row of real numbers per example")
class FlattensToComplex(Spiral):
    def flatten_state(self, state):
        return state.z


@caught_by("check_flatten_state", "make unflatten_state give back what flatten_state got")
class FlattensRealPart(Spiral):
    def unflatten_state(self, flat, like=None):
        state = super().unflatten_state(flat, like)
        return SpiralState(state.z.real.to(state.z.dtype), state.count)


@caught_by("check_state_size", "set state_size to the width of flatten_state, 8")
class CountsComplexOnce(Spiral):
    def __init__(self, input_size, hidden_size, **options):
        super().__init__(input_size, hidden_size, **options)
        self.state_size = hidden_size


@caught_by("check_jacobian", "make step pure and differentiable")
class DetachesInStep(Spiral):
    def step(self, x, state):
        return super().step(x, SpiralState(state.z.detach(), state.count))


@caught_by("check_compile", "let forward be the same function when it is compiled")
class OtherWhenCompiled(Leaky):
    def prepare(self, x):
        return x * 2 if torch.compiler.is_compiling() else x


# Bad input


@caught_by("check_input_width", "for input of width 1; it raised nothing")
class Broadcasts(Leaky):
    def check_width(self, x):
        if x.shape[-1] != 1:
            super().check_width(x)

    def prepare(self, x):
        return x.expand(*x.shape[:-1], self.input_size)


@caught_by("check_input_width", "for input of width 7; it raised RuntimeError")
class LeavesWidthToTorch(Leaky):
    def check_width(self, x):
        pass


@caught_by("check_input_width", "its message is 'wrong input'")
class SaysLittle(Leaky):
    def check_width(self, x):
        if x.shape[-1] != self.input_size:
            raise ValueError("wrong input")


@caught_by("check_input_width", "its message has several lines")
class SaysMuch(Leaky):
    def check_width(self, x):
        if x.shape[-1] != self.input_size:
            raise ValueError(f"wrong input:\nexpected {self.input_size}\ngot {x.shape[-1]}")


@caught_by("check_input_type", "for integer input; it raised nothing")
class CastsIntegers(Leaky):
    def check_input(self, x):
        pass

    def prepare(self, x):
        return x.to(self.bias.dtype)

    def begin(self, x, hx, batch):
        return super().begin(x.to(self.bias.dtype), hx, batch)


@caught_by("check_input_dimensions", "for input of shape (3,)")
class TakesOneStep(Leaky):
    def forward(self, input, hx=None):
        if isinstance(input, torch.Tensor) and input.dim() == 1:
            return super().forward(input.unsqueeze(0), hx)
        return super().forward(input, hx)


@caught_by("check_state_shape", "for hx of a batch of one for a larger batch; it raised nothing")
class BroadcastsState(Leaky):
    def begin(self, x, hx, batch):
        if hx is not None and hx.shape[1] == 1:
            hx = hx.expand(1, x.shape[1], self.hidden_size)
        return super().begin(x, hx, batch)


@caught_by("check_state_structure", "for a list around hx; it raised nothing")
class UnwrapsLists(Leaky):
    def begin(self, x, hx, batch):
        return super().begin(x, hx[0] if isinstance(hx, list) else hx, batch)


@caught_by("check_state_structure", "for integers as hx; it raised nothing")
class CastsState(Leaky):
    def begin(self, x, hx, batch):
        return super().begin(x, hx.to(x.dtype) if isinstance(hx, torch.Tensor) else hx, batch)


@caught_by("check_malformed_packed", "a PackedSequence with batch_sizes that grow")
class TrustsPacking(Leaky):
    def run_packed(self, packed, hx):
        y, h = super().forward(packed.data)
        return PackedSequence(y, packed.batch_sizes), h


@caught_by("check_size_errors", "'hidden_size' and '2.5' for hidden_size=2.5; it raised nothing")
def rounds_sizes(input_size, hidden_size):
    return Leaky(input_size, int(hidden_size) if hidden_size == 2.5 else hidden_size)


@caught_by("check_size_errors", "for input_size=True; it raised nothing")
def takes_true(input_size, hidden_size):
    return Leaky(1 if input_size is True else input_size, hidden_size)


@caught_by("check_unknown_option", "accepted in silence")
class SwallowsOptions(Leaky):
    def __init__(self, input_size, hidden_size, **options):
        super().__init__(input_size, hidden_size)


@caught_by("check_unknown_option", "names 'batch_firs' and 'batch_first'")
class NamesNoOption(Leaky):
    def __init__(self, input_size, hidden_size, batch_first=False, **options):
        if options:
            raise ValueError("unknown option")
        super().__init__(input_size, hidden_size)


@caught_by("check_modes", "make the form 'parallel' the same function as 'recurrent'")
class ForgetsInParallel(ms.nn.Parallel):
    """Its parallel form starts from zero whatever state comes in."""

    def declare(self, layer):
        self.parameter("weight_ih", self.hidden_size, layer.input_size, role="input")

    def advance(self, w, a, state):
        h = 0.5 * state + a
        return h, h

    def unroll_parallel(self, w, x, state, lengths):
        return ms.nn.Stack.unroll(self, w, x, torch.zeros_like(state), lengths)


# Other people's code


@caught_by("check_meta_loading", "it stays on meta")
class HiddenBuffer(Leaky):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.register_buffer("hidden", torch.ones(()), persistent=False)

    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return y * self.hidden, h


@caught_by("check_writes", "use the parameters as they are at each call")
class KeepsItsWeights(Leaky):
    def forward(self, input, hx=None):
        if torch.is_grad_enabled():
            return super().forward(input, hx)
        self.__dict__.setdefault("kept", {name: p.clone() for name, p in self.named_parameters()})
        if self.__dict__.get("within"):
            return super().forward(input, hx)
        self.__dict__["within"] = True
        try:
            return torch.func.functional_call(self, self.kept, (input, hx))
        finally:
            del self.__dict__["within"]


class Skew(nn.Module):
    def forward(self, a):
        return a - a.T


@caught_by("check_writes", "which is computed: it changes nothing")
class SilentParametrisation(Leaky):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.extra = nn.Parameter(torch.rand(2, 2))
        nn.utils.parametrize.register_parametrization(self, "extra", Skew())


@caught_by("check_export", "torch.export.export can follow it")
class DecidesOnValues(Leaky):
    def forward(self, input, hx=None):
        y, h = super().forward(input, hx)
        return (y if bool(input.sum() > 0) else 2 * y), h
