"""Networks of today against a second, plain loop over each paper's equations, one sequence and one head at a time.

Matrices are written as in the papers: linear attention as S_t = S_{t-1} diag(.) + v_t k_t^T with S of d_v rows, where
the product keeps the transposed.
"""

import math

import pytest
import torch

import mnemoscope as ms

INPUTS, UNITS, STEPS = 3, 6, 41
sigmoid, silu, softplus = torch.sigmoid, torch.nn.functional.silu, torch.nn.functional.softplus


def lru(w, xs, layer):
    lam = torch.exp(-torch.exp(w["nu"]) + 1j * torch.exp(w["theta"]))
    b = torch.complex(w["weight_ih"][0::2], w["weight_ih"][1::2])
    c = torch.complex(w["weight_readout"][:, 0::2], -w["weight_readout"][:, 1::2])
    state = torch.zeros(UNITS, dtype=torch.complex128)
    for x in xs:
        state = lam * state + torch.exp(w["gamma"]) * (b @ x.to(b))
        yield (c @ state).real + w["weight_skip"] @ x


def mingru(w, xs, layer):
    h = torch.zeros(UNITS, dtype=torch.float64)
    for x in xs:
        z, candidate = (w["weight_ih"] @ x + w["bias"]).chunk(2)
        h = (1 - sigmoid(z)) * h + sigmoid(z) * candidate
        yield h


def minlstm(w, xs, layer):
    h = torch.zeros(UNITS, dtype=torch.float64)
    for x in xs:
        f, i, candidate = (w["weight_ih"] @ x + w["bias"]).chunk(3)
        f, i = sigmoid(f), sigmoid(i)
        h = f / (f + i) * h + i / (f + i) * candidate
        yield h


def rglru(w, xs, layer):
    h = torch.zeros(UNITS, dtype=torch.float64)
    for x in xs:
        u = w["weight_project"] @ x
        r, i = sigmoid(w["weight_ih"] @ u + w["bias"]).chunk(2)
        a = sigmoid(w["decay"]) ** (8 * r)
        h = a * h + torch.sqrt(1 - a**2) * (i * u)
        yield h


def heads(vector, layer):
    return vector.reshape(layer.heads, layer.head_size)


def retnet(w, xs, layer):
    """Rotate q and k by their absolute positions, as the paper does; the score then depends on the distance alone."""
    size, half = layer.head_size, layer.head_size // 2
    history = []
    for t, x in enumerate(xs):
        q, k, v = (heads(part, layer) for part in (w["weight_ih"] @ x).chunk(3))
        angle = t * 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        turn = torch.exp(1j * angle)
        q, k = (torch.complex(part[:, :half], part[:, half : 2 * half]) * turn for part in (q, k))
        history.append((k / math.sqrt(size), v))
        out = torch.zeros_like(v)
        for s, (key, value) in enumerate(history):
            for head in range(layer.heads):
                gamma = 1 - 2.0 ** (-5 - head)
                out[head] += gamma ** (t - s) * (q[head] * key[head].conj()).sum().real * value[head]
        yield out.flatten()


def linear_attention(layer, xs, vectors):
    """Run S_t = S_{t-1} diag(a) + v k^T, o = S q, of every head; `vectors` gives q, k, v and a."""
    states = torch.zeros(layer.heads, layer.head_size, layer.head_size, dtype=torch.float64)
    for x in xs:
        q, k, v, a = (heads(part, layer) for part in vectors(x))
        for head in range(layer.heads):
            states[head] = states[head] @ torch.diag(a[head]) + torch.outer(v[head], k[head])
        yield torch.stack([states[head] @ q[head] for head in range(layer.heads)]).flatten()


def gla(w, xs, layer):
    def vectors(x):
        q, k, v = (w["weight_ih"] @ x).chunk(3)
        gate = sigmoid(w["weight_gate"] @ (w["weight_low"] @ x) + w["bias"]) ** (1 / 16)
        return q / math.sqrt(layer.head_size), k, v, gate

    return linear_attention(layer, xs, vectors)


def hgrn2(w, xs, layer):
    def vectors(x):
        q, f, v = (w["weight_ih"] @ x + w["bias"]).chunk(3)
        return silu(q), 1 - sigmoid(f), v, sigmoid(f)

    return linear_attention(layer, xs, vectors)


def deltanet(w, xs, layer):
    states = torch.zeros(layer.heads, layer.head_size, layer.head_size, dtype=torch.float64)
    eye = torch.eye(layer.head_size, dtype=torch.float64)
    for x in xs:
        q, k, v = (heads(part, layer) for part in silu(w["weight_ih"] @ x).chunk(3))
        beta = (2 if layer.negative_eigenvalues else 1) * sigmoid(w["weight_beta"] @ x)
        alpha = torch.ones(layer.heads, dtype=torch.float64)
        if "log_rate" in w:
            alpha = torch.exp(-torch.exp(w["log_rate"]) * softplus(w["weight_decay"] @ x + w["step"]))
        out = []
        for head in range(layer.heads):
            query, key = (part[head] / torch.sqrt(part[head] @ part[head] + 1e-6) for part in (q, k))
            states[head] = alpha[head] * states[head] @ (eye - beta[head] * torch.outer(key, key))
            states[head] += beta[head] * torch.outer(v[head], key)
            out.append(states[head] @ query / math.sqrt(layer.head_size))
        yield torch.cat(out)


def mlstm(w, xs, layer):
    """Run without the stabiliser, which must not change anything."""
    size = layer.head_size
    c = torch.zeros(layer.heads, size, size, dtype=torch.float64)
    n = torch.zeros(layer.heads, size, dtype=torch.float64)
    for x in xs:
        q, k, v, o = (w["weight_ih"] @ x).chunk(4)
        o = sigmoid(o + w["bias"])
        q, k, v = heads(q, layer), heads(k, layer) / math.sqrt(size), heads(v, layer)
        i, f = (w["weight_gates"] @ x + w["bias_gates"]).chunk(2)
        out = []
        for head in range(layer.heads):
            c[head] = sigmoid(f[head]) * c[head] + torch.exp(i[head]) * torch.outer(v[head], k[head])
            n[head] = sigmoid(f[head]) * n[head] + torch.exp(i[head]) * k[head]
            out.append(c[head] @ q[head] / max(abs(float(n[head] @ q[head])), 1.0))
        yield o * torch.cat(out)


def slstm(w, xs, layer):
    """Run without the stabiliser, and with R written out as one block-diagonal matrix for each gate."""
    h, c, n = (torch.zeros(UNITS, dtype=torch.float64) for _ in range(3))
    r = [torch.block_diag(*w["weight_hh"][:, gate]) for gate in range(4)]
    for x in xs:
        z, i, f, o = (a + m @ h for a, m in zip((w["weight_ih"] @ x + w["bias"]).chunk(4), r, strict=True))
        c = sigmoid(f) * c + torch.exp(i) * torch.tanh(z)
        n = sigmoid(f) * n + torch.exp(i)
        h = sigmoid(o) * c / n
        yield h


def mamba2(w, xs, layer):
    states = torch.zeros(layer.heads, layer.head_size, layer.order, dtype=torch.float64)
    for x in xs:
        v, b, c = torch.split(w["weight_ih"] @ x, [UNITS, layer.order, layer.order])
        v, step = heads(v, layer), softplus(w["weight_step"] @ x + w["step"])
        out = []
        for head in range(layer.heads):
            decay = torch.exp(-step[head] * torch.exp(w["log_rate"][head]))
            states[head] = decay * states[head] + step[head] * torch.outer(v[head], b)
            out.append(states[head] @ c + w["weight_skip"][head] * v[head])
        yield torch.cat(out)


def mamba(w, xs, layer):
    state = torch.zeros(UNITS, layer.order, dtype=torch.float64)
    for x in xs:
        u = w["weight_project"] @ x
        b, c, low = torch.split(w["weight_ih"] @ u, [layer.order, layer.order, layer.rank])
        step = softplus(w["weight_step"] @ low + w["step"])
        for feature in range(UNITS):
            decay = torch.exp(step[feature] * -torch.exp(w["log_rate"][feature]))
            decay = 2 * decay - 1 if layer.negative_eigenvalues else decay
            state[feature] = decay * state[feature] + step[feature] * b * u[feature]
        yield state @ c + w["weight_skip"] * u


def s4d(w, xs, layer):
    """Discretise by zero-order hold with all conjugate pairs written out."""
    rates = torch.complex(-torch.exp(w["log_decay"]), w["frequency"])
    rates = torch.cat([rates, rates.conj()], -1)
    c = torch.view_as_complex(w["weight_readout"])
    c = torch.cat([c, c.conj()], -1)
    decay = torch.exp(torch.exp(w["log_step"])[:, None] * rates)
    state = torch.zeros(UNITS, layer.order, dtype=torch.complex128)
    for x in xs:
        u = w["weight_project"] @ x
        state = decay * state + (decay - 1) / rates * u[:, None]
        yield (c * state).sum(-1).real + w["weight_skip"] * u


def s4(w, xs, layer):
    """Build A with all conjugate pairs as a dense matrix, and solve the bilinear rule."""
    rates = torch.complex(-torch.exp(w["log_decay"]), w["frequency"])
    p, b, c = (torch.view_as_complex(w[name]) for name in ("low_rank", "weight_ih", "weight_readout"))
    rates, p, b, c = (torch.cat([part, part.conj()], -1) for part in (rates, p, b, c))
    eye = torch.eye(layer.order, dtype=torch.complex128)
    state = torch.zeros(UNITS, layer.order, dtype=torch.complex128)
    for x in xs:
        u, out = w["weight_project"] @ x, []
        for feature in range(UNITS):
            group = feature * layer.groups // UNITS
            a = torch.diag(rates[group]) - torch.outer(p[group], p[group].conj())
            step = torch.exp(w["log_step"][feature])
            right = (eye + step / 2 * a) @ state[feature] + step * b[group] * u[feature]
            state[feature] = torch.linalg.solve(eye - step / 2 * a, right)
            out.append((c[feature] @ state[feature]).real + w["weight_skip"][feature] * u[feature])
        yield torch.stack(out)


def rwkv7(w, xs, layer):
    states = torch.zeros(layer.heads, layer.head_size, layer.head_size, dtype=torch.float64)
    previous = torch.zeros(UNITS, dtype=torch.float64)
    for x in xs:
        u = w["weight_project"] @ x
        r, k, v, d, a = (torch.lerp(u, previous, mu) for mu in w["shift"])
        previous = u
        r, k, v = (matrix @ part for matrix, part in zip(w["weight_ih"], (r, k, v), strict=True))
        d = w["decay"] + w["weight_high"][0] @ torch.tanh(w["weight_low"][0] @ d)
        decay = torch.exp(-math.exp(-0.5) * sigmoid(d))
        a = sigmoid(w["rate"] + w["weight_high"][1] @ (w["weight_low"][1] @ a))
        removed, added = k * w["removal"], k * torch.lerp(torch.ones_like(a), a, w["replacement"])
        parts = (r, v, decay, a, removed, added, w["bonus"])
        r, v, decay, a, removed, added, bonus = (heads(part, layer) for part in parts)
        out = []
        for head in range(layer.heads):
            unit = removed[head] / torch.sqrt(removed[head] @ removed[head] + 1e-6)
            transition = torch.diag(decay[head]) - torch.outer(unit, a[head] * unit)
            states[head] = states[head] @ transition + torch.outer(v[head], added[head])
            out.append(states[head] @ r[head] + (r[head] * bonus[head] * added[head]).sum() * v[head])
        yield torch.cat(out)


CASES = {
    "lru": (lru, {}),
    "mingru": (mingru, {}),
    "minlstm": (minlstm, {}),
    "rglru": (rglru, {}),
    "retnet": (retnet, {"heads": 3}),
    "gla": (gla, {"heads": 2, "rank": 2}),
    "hgrn2": (hgrn2, {"heads": 2}),
    "deltanet": (deltanet, {"heads": 2}),
    "deltanet negative": (deltanet, {"heads": 2, "negative_eigenvalues": True}),
    "gated-deltanet": (deltanet, {"heads": 3}),
    "mlstm": (mlstm, {"heads": 2}),
    "slstm": (slstm, {"heads": 2}),
    "mamba2": (mamba2, {"heads": 2, "order": 4}),
    "mamba": (mamba, {"order": 4, "rank": 2}),
    "mamba negative": (mamba, {"order": 4, "negative_eigenvalues": True}),
    "s4d": (s4d, {"order": 8}),
    "s4": (s4, {"order": 8, "groups": 3}),
    "rwkv7": (rwkv7, {"heads": 2, "rank": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_form_is_the_papers_recurrence(case):
    equations, options = CASES[case]
    generator = torch.Generator().manual_seed(0)
    sizes = {"input_size": INPUTS, "hidden_size": UNITS, "generator": generator, "dtype": torch.float64}
    layer = ms.nn.create(case.split()[0], **sizes, **options)
    with torch.no_grad():  # away from what starts at zero or at the same value everywhere
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        x = torch.randn(STEPS, 1, INPUTS, generator=generator, dtype=torch.float64)
        wanted = torch.stack(list(equations(layer.weights()[0], x[:, 0], layer)))
        for mode in layer.modes:
            layer.mode = mode
            torch.testing.assert_close(
                layer(x)[0][:, 0], wanted, rtol=1e-8, atol=1e-8, msg=lambda m, f=mode: f"{f}: {m}"
            )
