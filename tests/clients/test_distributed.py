"""DistributedDataParallel and fully_shard on two processes against one process with the whole batch."""

import os

import pytest
import torch
import torch.distributed as dist
from torch import nn

import mnemoscope as ms

pytestmark = pytest.mark.heavy
NAMES = ["rnn", "exprnn", "nnrnn", "lstm", "lru", "gla"]


class Reader(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.rnn = ms.nn.create(name, 3, 4, generator=torch.Generator().manual_seed(1))
        self.head = nn.Linear(self.rnn.output_size, 2)
        nn.init.constant_(self.head.weight, 0.1)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


def data():
    return torch.randn(5, 8, 3, generator=torch.Generator().manual_seed(2))


def train(model, x, steps=3):
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimiser.zero_grad()
        model(x).square().mean().backward()
        optimiser.step()


def work(rank, name, kind, folder):
    os.environ |= {"GLOO_SOCKET_IFNAME": "lo"}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    try:
        model = Reader(name)
        if kind == "ddp":
            wrapped = nn.parallel.DistributedDataParallel(model)
        else:
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            mesh = init_device_mesh("cpu", (2,))
            fully_shard(model.rnn, mesh=mesh)
            wrapped = fully_shard(model, mesh=mesh)
        train(wrapped, data()[:, 4 * rank : 4 * rank + 4])
        whole = {key: p.full_tensor() if hasattr(p, "full_tensor") else p for key, p in model.named_parameters()}
        if rank == 0:
            torch.save({key: p.detach() for key, p in whole.items()}, f"{folder}/weights.pt")
        dist.barrier()  # one that leaves early takes gloo's threads of the other with it
    finally:
        dist.destroy_process_group()


@pytest.mark.skipif(not dist.is_gloo_available(), reason="torch was built without gloo")
@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
@pytest.mark.parametrize("name", NAMES)
def test_two_processes_learn_as_one(name, kind, tmp_path):
    torch.multiprocessing.spawn(work, (name, kind, str(tmp_path)), nprocs=2)
    alone = Reader(name)
    start = {key: p.detach().clone() for key, p in alone.named_parameters()}
    train(alone, data())
    found = torch.load(tmp_path / "weights.pt")
    for key, p in alone.named_parameters():
        torch.testing.assert_close(found[key], p.detach(), atol=1e-5, rtol=1e-4)
    assert any(not torch.equal(start[key], p) for key, p in alone.named_parameters())
