"""Measures of relational networks: matrices with a known entropy, networks that see objects or relations only."""

import math

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.relations import _entropy


def rmts(**options):
    return ms.nn.create("corelnet", panels=6, answers=2, **options)


def test_entropy_by_hand():
    uniform = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    found = _entropy(uniform[None])
    assert found["entropy"] == pytest.approx((0 + math.log(2) + math.log(3)) / 3)
    assert found["sharpness"] == pytest.approx(0)
    assert _entropy(np.eye(3)[None])["sharpness"] == pytest.approx(1)
    assert _entropy(np.array([[[1.0, -1.0], [2.0, 5.0]]])) == {"entropy": None, "sharpness": None}


def test_relation_matrix_is_what_the_network_answers_from():
    network = rmts()
    found = ms.measures.relation_matrix(network, "rmts", examples=5, seed=3)
    batch = ms.tasks.create("rmts").sample(5, torch.Generator().manual_seed(3))
    wanted = network.relations(network.represent(batch.inputs)).detach()
    np.testing.assert_allclose(found.matrix, wanted[0], atol=1e-6)
    np.testing.assert_allclose(found.mean, wanted.mean(0), atol=1e-6)
    assert found.task == "rmts"
    assert 0 < found.entropy < math.log(6)
    assert network.training


class Blind(ms.nn.CoRelNet):
    """A network that sees nothing but whether panels are exactly equal."""

    def relations(self, z):
        return torch.isclose(z.unsqueeze(1), z.unsqueeze(0), atol=1e-5).all(-1).permute(2, 0, 1).to(z.dtype)


@pytest.mark.parametrize("task", ["rmts", "same-different-6"])
def test_answers_from_equality_alone_depend_on_relations_only(task):
    torch.manual_seed(1)
    found = ms.measures.relational_dependence(Blind(6, 2), ms.tasks.create(task, held_out=50), examples=300)
    assert found.share == pytest.approx(1.0, abs=1e-9)
    assert found.agreement == 1
    assert found.change == pytest.approx(0, abs=1e-9)
    assert found.spread > 0


def test_answers_from_the_objects_do_not():
    """Of what a relation network makes of images before training most changes with the images."""
    network = ms.nn.create("relation-network", panels=6, answers=2)
    task = ms.tasks.create("rmts", held_out=50)
    assert ms.measures.relational_dependence(network, task, examples=300).share < 0.7


@pytest.mark.parametrize("name", ["games-same", "games-row-matching", "games-colour-shape"])
@pytest.mark.parametrize("part", ["train", "hexominoes"])
def test_games_keep_every_equality_when_objects_are_exchanged(name, part):
    first, second = ms.tasks.create(name, part=part).sample_twice(200, torch.Generator().manual_seed(0))
    assert torch.equal(first.targets, second.targets)
    one, other = (batch.inputs.dense().flatten(2) for batch in (first, second))
    alike = [(x.unsqueeze(0) == x.unsqueeze(1)).all(-1) for x in (one, other)]
    assert torch.equal(*alike)
    assert (one != other).any(-1).any(0).double().mean() > 0.9


def test_objects_of_left_of_cannot_be_exchanged():
    network = ms.nn.create("corelnet", panels=9, answers=2, input_size=(3, 12, 12))
    with pytest.raises(UserError, match="games-left-of asks for more than which objects are the same"):
        ms.measures.relational_dependence(network, "games-left-of")


def test_geometry_of_vectors_by_hand():
    from mnemoscope.measures.relations import _geometry

    square = _geometry(torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]]))
    assert square["self_wins"] == 1
    assert square["dimension"] == pytest.approx(2)
    assert square["norm_spread"] == pytest.approx(0)
    assert square["cosine"] == pytest.approx(-1 / 3)
    line = _geometry(torch.tensor([[1.0, 0], [3.0, 0]]))
    assert line["self_wins"] == pytest.approx(0.5)  # the shorter one is more similar to the longer one
    assert line["dimension"] == pytest.approx(1)


def test_geometry_beside_a_random_encoder():
    network = rmts(encoder="random", generator=torch.Generator().manual_seed(1))
    found = ms.measures.encoder_geometry(network, ms.tasks.create("rmts", held_out=0), examples=300)
    assert found.images == 100
    assert 0.5 < found.self_wins <= 1
    assert abs(found.self_wins - found.random_self_wins) < 0.3
    assert 1 < found.dimension < 100


def test_one_line_for_what_does_not_fit():
    with pytest.raises(UserError, match="network must be a relational network .*, got a RNN of kind recurrent"):
        ms.measures.relation_matrix(ms.nn.RNN(2, 3))
    with pytest.raises(UserError, match=r"task must be a relational task with 6 panels of \(3, 32, 32\) and 2 answers"):
        ms.measures.relation_matrix(rmts(), "dist3")
    with pytest.raises(UserError, match="has no relation matrix"):
        ms.measures.relation_matrix(ms.nn.create("relation-network", panels=2, answers=2))
    with pytest.raises(UserError, match="no task has 5 panels"):
        ms.measures.relation_matrix(ms.nn.create("corelnet", panels=5, answers=2))


@pytest.mark.parametrize("name", ["relations", "relational-dependence", "encoder-geometry"])
def test_results_print_draw_and_export(name):
    function = ms.measures.get(name).function
    found = function(rmts(), examples=8)
    assert "rmts" in str(found) or name == "encoder-geometry"
    assert found.to_dict()["measure"] == name
    assert found.plot().to_dict()
