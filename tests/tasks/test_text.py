"""Text: parts, pieces, contiguous streams, the vocabulary; the real file where it is."""

import itertools
import math
from collections import Counter
from pathlib import Path

import pytest
import torch
from tests.tasks.every_task import entropy
from tests.tasks.fake_data import is_there, sentences

import mnemoscope as ms
from mnemoscope.core.errors import UserError


def create(name, data, **settings):
    return ms.tasks.create(name, data=data, verify=False, **settings)


def read(task, tokens):
    return "".join(task.text.vocabulary[token] for token in tokens)


def shakespeare_text(data):
    return Path(data, "tinyshakespeare", "input.txt").read_text(encoding="utf-8")


def test_shakespeare_is_cut_in_order(data):
    text = shakespeare_text(data)
    task = create("shakespeare", data)
    train, validation, test, vocabulary, *_ = task.text
    assert vocabulary == "".join(sorted(set(text)))
    first, second = int(0.8 * len(text)), int(0.1 * len(text))
    assert read(task, train.tolist()) == text[:first]
    assert read(task, validation.tolist()) == text[first : first + second]
    assert read(task, test.tolist()) == text[first + second :]
    assert task.embedding == task.input_size == task.output_size == len(vocabulary)
    assert task.baseline == pytest.approx(entropy([n / first for n in Counter(text[:first]).values()]))


def test_treebank_lines_lose_their_outer_spaces(data):
    task = create("ptb", data)
    for part, seed, count in (("train", 0, 150), ("validation", 1, 40), ("test", 2, 30)):
        lines = "".join(line.strip() + "\n" for line in sentences(count, seed).splitlines())
        assert read(task, getattr(task.text, part).tolist()) == lines


def test_spaced_characters_are_the_same_text(data, tmp_path):
    for part, seed, count in (("train", 0, 150), ("valid", 1, 40), ("test", 2, 30)):
        lines = [line.strip().replace(" ", "_") for line in sentences(count, seed).splitlines()]
        (tmp_path / f"ptb.char.{part}.txt").write_text("".join(" " + " ".join(line) + " \n" for line in lines))
    plain, spaced = create("ptb", data).text, create("ptb", tmp_path).text
    assert plain.vocabulary == spaced.vocabulary
    assert all(torch.equal(a, b) for a, b in zip(plain[:3], spaced[:3], strict=True))


def test_a_drawn_piece_is_of_the_training_text(data):
    task = create("shakespeare", data, length=20)
    text = shakespeare_text(data)
    batch = task.sample(30, torch.Generator().manual_seed(0))
    train = text[: int(0.8 * len(text))]
    starts = set()
    for number in range(30):
        piece = read(task, batch.inputs[:, number].tolist())
        assert piece + read(task, batch.targets[-1:, number].tolist()) in train
        assert batch.inputs[1:, number].tolist() == batch.targets[:-1, number].tolist()
        starts.add(train.find(piece))
    assert len(starts) > 20


def test_pieces_follow_each_other_and_miss_nothing(data):
    task = create("ptb", data, length=11)
    for part in ("train", "validation", "test"):
        batch = getattr(task.splits(), part)
        text = getattr(task.text, part)
        count = (len(text) - 1) // 11
        assert batch.inputs.shape == (11, count)
        assert batch.inputs.T.flatten().tolist() == text[: 11 * count].tolist()
        assert batch.targets.T.flatten().tolist() == text[1 : 11 * count + 1].tolist()


@pytest.mark.parametrize(("streams", "window"), [(1, 7), (4, 10), (5, 1000), (3, None)])
def test_windows_are_contiguous_streams(data, streams, window):
    task = create("ptb", data, length=13)
    text = task.text.validation.tolist()
    steps = (len(text) - 1) // streams
    parts = list(task.windows("validation", streams, window))
    inputs, targets = (torch.cat([part[side] for part in parts]) for side in (0, 1))
    for stream in range(streams):
        start = stream * steps
        assert inputs[:, stream].tolist() == text[start : start + steps]
        assert targets[:, stream].tolist() == text[start + 1 : start + steps + 1]
    assert all(len(part.inputs) == (window or 13) for part in parts[:-1])
    assert all(part.mask.all() for part in parts)
    assert all(part.lengths.tolist() == [len(part.inputs)] * streams for part in parts)


def test_the_loss_without_memory_is_that_of_pairs(data):
    task = create("shakespeare", data)
    text = read(task, task.text.train.tolist())
    after = {}
    for first, second in itertools.pairwise(text):
        after.setdefault(first, Counter())[second] += 1
    own = sum(sum(each.values()) * entropy([n / sum(each.values()) for n in each.values()]) for each in after.values())
    assert task.memoryless == pytest.approx(own / (len(text) - 1), rel=1e-9)
    assert task.memoryless < task.baseline


def test_bits_per_character(data):
    task = create("shakespeare", data)
    assert task.reported(math.log(2))["bpc"] == pytest.approx(1.0)
    batch = task.sample(3)
    uniform = torch.zeros(64, 3, task.output_size)
    bits = task.reported(task.loss(uniform, batch).item())["bpc"]
    assert bits == pytest.approx(math.log2(task.output_size), rel=1e-6)
    assert task.score(uniform, batch) == pytest.approx(1 - bits * math.log(2) / task.baseline, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda task: next(task.windows("trane", 2)), "split must be 'train' or 'validation' or 'test', got 'trane'"),
        (lambda task: next(task.windows("test", 10**6)), "batch must be at most"),
        (lambda task: task.harder(10**6).sample(2), "length must be below"),
        (lambda task: task.harder(10**6).splits(), "length must be below"),
    ],
)
def test_mistakes_are_one_line(data, call, message):
    with pytest.raises(UserError) as caught:
        call(create("ptb", data))
    assert str(caught.value).startswith(message)


def test_a_strange_character_is_named(data, tmp_path):
    for part, seed in (("train", 0), ("valid", 1), ("test", 2)):
        (tmp_path / f"ptb.{part}.txt").write_text(sentences(30, seed) + ("€" if part == "test" else ""))
    with pytest.raises(UserError, match="the character '€' does not occur in the training text"):
        create("ptb", tmp_path).sample(1)


@pytest.mark.skipif(not is_there("tinyshakespeare"), reason="MNEMOSCOPE_DATA names no folder with Tiny Shakespeare")
def test_the_real_file():
    task = ms.tasks.create("shakespeare")
    assert task.embedding == 65
    assert sum(map(len, task.text[:3])) == 1_115_394
    assert len(task.text.train) == 892_315
    assert read(task, task.text.train[:14].tolist()) == "First Citizen:"
    assert task.reported(task.baseline)["bpc"] == pytest.approx(4.77, abs=0.01)
