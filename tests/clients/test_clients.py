"""Eight programs that use torch.nn.RNN, LSTM or GRU, unchanged but for the constructor of the layer."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import mnemoscope as ms

pytestmark = pytest.mark.heavy
LAYERS = ["rnn", "lstm", "gru", "exprnn", "scornn", "nnrnn", "goru", "mirnn"]
CARRIED = {name: {"nonlinearity": "tanh"} for name in ("exprnn", "scornn", "nnrnn")}
"""What the constructor must say where a state is carried on without end (docs/swapping.md)."""


def make(name, *sizes, **options):
    return ms.nn.create(name, *sizes, **options)


def detach(hidden):
    return hidden.detach() if isinstance(hidden, torch.Tensor) else tuple(part.detach() for part in hidden)


def first(hidden):
    return hidden[0] if isinstance(hidden, tuple) else hidden


def descends(losses):
    assert all(torch.isfinite(torch.as_tensor(losses)))
    assert sum(losses[-3:]) < sum(losses[:3])


# 1. A word-level language model: embedding, layers with dropout, decoder, truncated gradients, clipping.


class LanguageModel(nn.Module):
    def __init__(self, rnn, tokens, width):
        super().__init__()
        self.drop, self.encoder = nn.Dropout(0.1), nn.Embedding(tokens, width)
        self.rnn, self.decoder = rnn, nn.Linear(rnn.output_size, tokens)
        for weight in (self.encoder.weight, self.decoder.weight):
            nn.init.uniform_(weight, -0.1, 0.1)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        return F.log_softmax(self.decoder(self.drop(output)), -1), hidden

    def init_hidden(self, batch):
        weight = next(self.parameters())
        zeros = weight.new_zeros(self.rnn.num_layers, batch, self.rnn.hidden_size)
        return (zeros, zeros.clone()) if type(self.rnn).__name__ == "LSTM" else zeros


@pytest.mark.parametrize("name", LAYERS)
def test_word_language_model(name):
    torch.manual_seed(0)
    model = LanguageModel(make(name, 12, 16, num_layers=2, dropout=0.1, **CARRIED.get(name, {})), 7, 12)
    model.rnn.flatten_parameters()
    text, losses, rate = torch.arange(4 * 60).remainder(7).reshape(60, 4), [], 2.0
    hidden = model.init_hidden(4)
    for start in list(range(0, 50, 10)) * 60:
        hidden = detach(hidden)
        model.zero_grad()
        output, hidden = model(text[start : start + 10], hidden)
        loss = F.nll_loss(output.flatten(0, 1), text[start + 1 : start + 11].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(p.grad, alpha=-rate)
        losses.append(float(loss.detach()))
    assert max(losses[-3:]) < 0.5  # 1.95 for who knows nothing


# 2. A Lightning module: hparams, automatic optimisation, a checkpoint written and read.


@pytest.mark.parametrize("name", LAYERS)
def test_lightning(name, tmp_path):
    lightning = pytest.importorskip("lightning", reason="lightning is not installed: pip install mnemoscope[clients]")

    class Regressor(lightning.LightningModule):
        def __init__(self, name):
            super().__init__()
            self.save_hyperparameters()
            self.rnn = make(name, 3, 8, batch_first=True)
            self.head, self.seen = nn.Linear(self.rnn.output_size, 1), []

        def forward(self, x):
            return self.head(self.rnn(x)[0][:, -1])

        def training_step(self, batch, _):
            loss = F.mse_loss(self(batch[0]), batch[1]) + self.rnn.penalty()
            self.seen.append(float(loss.detach()))
            return loss

        def configure_optimizers(self):
            groups = [*self.rnn.parameter_groups(lr=1e-2), {"params": self.head.parameters(), "lr": 1e-2}]
            return torch.optim.Adam(groups)

        def on_train_batch_end(self, *_):
            self.rnn.after_step()

    lightning.seed_everything(0, verbose=False)
    x = torch.randn(64, 5, 3)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, 0, :1]), batch_size=16)
    model = Regressor(name)
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(max_epochs=8, accelerator="cpu", default_root_dir=tmp_path, **quiet)
        trainer.fit(model, data)
        trainer.save_checkpoint(tmp_path / "model.ckpt")
        loaded = Regressor.load_from_checkpoint(tmp_path / "model.ckpt", weights_only=True)
    descends(model.seen)
    torch.testing.assert_close(loaded.eval()(x), model.eval()(x))


# 3. A skorch module in a grid search, cloned and pickled.


class Classifier(nn.Module):
    def __init__(self, name="rnn", units=4):
        super().__init__()
        self.rnn = make(name, 2, units, batch_first=True)
        self.head = nn.Linear(self.rnn.output_size, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


@pytest.mark.parametrize("name", LAYERS)
def test_skorch(name):
    skorch = pytest.importorskip("skorch", reason="skorch is not installed: pip install mnemoscope[clients]")
    import copy
    import pickle

    import numpy as np
    from sklearn.base import clone

    torch.manual_seed(0)
    x = np.random.default_rng(0).normal(size=(80, 5, 2)).astype("float32")
    y = (x[:, -1, 0] > 0).astype("int64")
    options = {"criterion": nn.CrossEntropyLoss, "max_epochs": 30, "lr": 0.03, "verbose": 0, "train_split": None}
    options |= {"optimizer": torch.optim.Adam}
    net = clone(skorch.NeuralNetClassifier(Classifier, module__name=name, module__units=6, **options))
    net.fit(x, y)
    assert net.score(x, y) > 0.7
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        np.testing.assert_array_equal(twin.predict(x), net.predict(x))


# 4. Recurrent PPO: an initialising loop over the layer's parameters, one call per step, the state reset by `done`.


class Agent(nn.Module):
    def __init__(self, rnn):
        super().__init__()
        self.rnn = rnn
        for name, parameter in self.rnn.named_parameters():
            if "bias" in name:
                nn.init.constant_(parameter, 0)
            elif "weight" in name and parameter.dim() > 1:
                nn.init.orthogonal_(parameter, 1.0)
        self.rnn.reset_parameters()  # the line that docs/swapping.md adds: angles are no weights
        self.actor, self.critic = nn.Linear(rnn.output_size, 2), nn.Linear(rnn.output_size, 1)

    def states(self, x, hidden, done):
        """x (time * batch, d), done (time * batch,), hidden (1, batch, n) or a pair."""
        batch = first(hidden).shape[1]
        outputs = []
        for h, d in zip(x.reshape(-1, batch, x.shape[-1]), done.reshape(-1, batch), strict=True):
            alive = (1.0 - d).view(1, -1, 1)
            kept = tuple(alive * part for part in hidden) if isinstance(hidden, tuple) else alive * hidden
            y, hidden = self.rnn(h.unsqueeze(0), kept)
            outputs.append(y)
        return torch.cat(outputs).flatten(0, 1), hidden


@pytest.mark.parametrize("name", LAYERS)
def test_recurrent_ppo(name):
    torch.manual_seed(0)
    agent = Agent(make(name, 3, 6))
    x, done = torch.randn(8, 2, 3), (torch.rand(8, 2) < 0.2).float()
    start = agent.rnn.init_state(2)
    with torch.no_grad():  # acting: one call per step
        hidden, acted = start, []
        for now, ended in zip(x, done, strict=True):
            y, hidden = agent.states(now, hidden, ended)
            acted.append(agent.actor(y))
    learned, _ = agent.states(x.flatten(0, 1), start, done.flatten())  # learning: the whole rollout
    torch.testing.assert_close(agent.actor(learned), torch.cat(acted), atol=1e-5, rtol=1e-5)
    ratio = F.log_softmax(agent.actor(learned), -1)[:, 0].exp()
    (ratio.mean() + agent.critic(learned).square().mean()).backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    assert all(p.grad is not None and p.grad.isfinite().all() for p in agent.rnn.parameters())


# 5. An encoder that takes a mask: sorts, packs, runs, unpacks, restores the order, and gives the last states.


class MaskedEncoder(nn.Module):
    def __init__(self, module):
        super().__init__()
        self._module = module

    def forward(self, inputs, mask, hidden=None):
        lengths = mask.long().sum(-1)
        lengths, order = lengths.sort(descending=True)
        packed = pack_padded_sequence(inputs[order], lengths.cpu(), batch_first=True)
        output, state = self._module(packed, hidden)
        y, _ = pad_packed_sequence(output, batch_first=True, total_length=inputs.shape[1])
        back = order.argsort()
        return y[back], first(state)[:, back]


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("name", LAYERS)
def test_masked_encoder(name, directions):
    torch.manual_seed(0)
    layer = make(name, 3, 5, batch_first=True, bidirectional=directions == 2)
    x, mask = torch.randn(3, 6, 3), torch.tensor([[1] * 4 + [0] * 2, [1] * 6, [1] * 2 + [0] * 4]).bool()
    y, last = MaskedEncoder(layer)(x, mask)
    assert y.shape == (3, 6, 5 * directions)
    assert not y[~mask].any()
    for i, length in enumerate(mask.sum(-1).tolist()):
        alone, state = layer(x[i : i + 1, :length])
        torch.testing.assert_close(y[i, :length], alone[0])
        torch.testing.assert_close(last[:, i], first(state)[:, 0])


# 6. Sequence to sequence: an encoder's last state starts a decoder that is called step by step.


@pytest.mark.parametrize("name", LAYERS)
def test_sequence_to_sequence(name):
    torch.manual_seed(0)
    encoder, decoder = make(name, 4, 12), make(name, 4, 12)
    embedding, head = nn.Embedding(5, 4), nn.Linear(12, 5)
    modules = nn.ModuleList([encoder, decoder, embedding, head])
    optimiser = torch.optim.Adam(modules.parameters(), lr=5e-3)
    source, losses = torch.randint(1, 5, (4, 16)), []
    for _ in range(30):
        _, hidden = encoder(embedding(source))
        token, loss = torch.zeros(1, 16, dtype=torch.long), 0.0
        for target in source:  # the target is the source again
            y, hidden = decoder(embedding(token), hidden)
            loss = loss + F.cross_entropy(head(y[0]), target)
            token = target[None]
        optimiser.zero_grad()
        (loss + encoder.penalty() + decoder.penalty()).backward()
        optimiser.step()
        encoder.after_step(), decoder.after_step()
        losses.append(float(loss.detach()))
    descends(losses)
    with torch.no_grad(), decoder.cached():
        _, hidden = encoder(embedding(source))
        token = torch.zeros(1, 16, dtype=torch.long)
        for _ in range(4):
            y, hidden = decoder(embedding(token), hidden)
            token = head(y).argmax(-1)
    assert token.shape == (1, 16)


# 7. torchrl: its recurrent modules around ms.nn.LSTM and ms.nn.GRU, single steps and rollouts with resets.


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_torchrl(kind):
    torchrl = pytest.importorskip("torchrl.modules", reason="torchrl is not installed: pip install mnemoscope[clients]")
    from tensordict import TensorDict

    ours = make(kind, 3, 4, batch_first=True)
    keys = {"in_keys": ["x", "h", "c"][: 3 if kind == "lstm" else 2]}
    keys["out_keys"] = ["y", ("next", "h"), ("next", "c")][: 3 if kind == "lstm" else 2]
    module = getattr(torchrl, f"{kind.upper()}Module")
    wrapped = {"ours": module(**{kind: ours}, **keys), "torch's": module(**{kind: ours.to_torch()}, **keys)}
    is_init = torch.zeros(2, 6, 1, dtype=torch.bool)
    is_init[:, 0] = True
    is_init[1, 3] = True  # the second episode of the second row
    state = {key: torch.zeros(2, 6, 1, 4) for key in keys["in_keys"][1:]}
    data = TensorDict({"x": torch.randn(2, 6, 3), "is_init": is_init, **state}, batch_size=[2, 6])
    found = {}
    for name, one in wrapped.items():
        with torchrl.set_recurrent_mode(True):
            found[name] = one(data.clone())
    torch.testing.assert_close(found["ours"]["y"], found["torch's"]["y"])
    torch.testing.assert_close(found["ours"]["next", "h"], found["torch's"]["next", "h"])


# 8. accelerate: prepared model and optimiser, gradient accumulation, clipping, a state saved and loaded.


@pytest.mark.parametrize("name", LAYERS)
def test_accelerate(name, tmp_path):
    accelerate = pytest.importorskip("accelerate", reason="accelerate is missing: pip install mnemoscope[clients]")
    torch.manual_seed(0)
    x = torch.randn(64, 5, 2)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x[:, -1, 0] > 0).long()), batch_size=8)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = Classifier(name, 6)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    model, optimiser, data = accelerator.prepare(model, optimiser, data)
    losses = []
    for _ in range(6):
        for inputs, labels in data:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(inputs), labels)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                optimiser.zero_grad()
            losses.append(float(loss.detach()))
    descends(losses)
    before = model(x)
    accelerator.save_state(tmp_path)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.3)
    accelerator.load_state(tmp_path)
    torch.testing.assert_close(model(x), before)
