"""`check_network`: what it returns, what it raises, and what it makes of somebody else's good networks."""

from functools import partial

import pytest
import torch
from broken_networks import IgnoresState
from third_party_networks import Leaky, Spiral

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.testing import CHECKS, CheckFailed, Report, Subject, check_network

NAMES = [check.__name__ for check in CHECKS]


def test_a_network_without_optional_verbs_passes_and_the_rest_is_listed():
    report = check_network(Leaky)
    assert report.skipped == {
        "check_batch_first": "the factory has no option 'batch_first'",
        "check_layers": "the factory has no option 'num_layers'",
        "check_bidirectional": "the factory has no option 'bidirectional'",
        "check_init_state": "the network has no init_state",
        "check_step": "the network has no step",
        "check_modes": "the network has one form",
        "check_packed_bidirectional": "the factory has no option 'bidirectional'",
        "check_dtype_option": "the factory has no option 'dtype'",
        "check_generator": "the factory has no option 'generator'",
        "check_after_step": "the network has no after_step",
        "check_penalty": "the network has no penalty",
        "check_parameter_groups": "the network has no parameter_groups",
        "check_dropout": "the factory has no option 'num_layers'",
        "check_flatten_state": "the network has no flatten_state",
        "check_state_size": "the network has no state_size",
        "check_jacobian": "the network has no step",
        "check_unknown_option": "Python's own TypeError refuses it; a ValueError with the nearest option is kinder",
    }
    assert report.passed == [name for name in NAMES if name not in report.skipped]


def test_a_network_with_its_own_state_and_every_verb_passes():
    report = check_network(Spiral)
    assert set(report.skipped) == {
        "check_layers",
        "check_bidirectional",
        "check_modes",
        "check_packed_bidirectional",
        "check_bfloat16",
        "check_dropout",
        "check_unknown_option",
    }
    assert report.skipped["check_bfloat16"] == "refused: dtype must be float32 or float64, got torch.bfloat16"


@pytest.mark.parametrize(
    "factory", [lambda: Leaky(2, 5), lambda: Spiral(2, 3, batch_first=True)], ids=["Leaky", "Spiral"]
)
def test_a_factory_without_arguments_skips_sizes_and_options(factory):
    report = check_network(factory, skip=("check_compile",))
    reason = "the factory takes no arguments, so its sizes and options cannot be chosen"
    chosen = {name for name, why in report.skipped.items() if why == reason}
    assert chosen == {
        "check_batch_first",
        "check_layers",
        "check_bidirectional",
        "check_small_sizes",
        "check_packed_bidirectional",
        "check_dtype_option",
        "check_generator",
        "check_dropout",
        "check_size_errors",
        "check_unknown_option",
    }
    assert report.skipped["check_compile"] == "the caller asked for it"


def test_a_network_that_says_it_reads_the_future_is_not_asked_for_causality():
    report = check_network(lambda: ms.nn.GRU(3, 4, bidirectional=True), skip=("check_compile", "check_pickle"))
    for name in ("check_causal", "check_chunked", "check_step", "check_jacobian"):
        assert report.skipped[name] == "the network says that it is not causal"
    assert "check_packed_state" in report.passed


def test_every_failure_is_a_line_of_its_own():
    with pytest.raises(CheckFailed, match=r"^IgnoresState fails check_chunked: start from the hx that comes") as caught:
        check_network(IgnoresState)
    report = caught.value.report
    assert str(caught.value).splitlines() == list(report.failed.values())
    assert next(iter(report.failed)) == "check_chunked"
    assert len(report.failed) > 1
    assert {*report.failed, *report.passed, *report.skipped} == set(NAMES)
    assert issubclass(CheckFailed, AssertionError)


def test_the_networks_own_error_is_the_cause_and_its_place_is_named():
    class Raises(Leaky):
        def unroll(self, x, h, lengths=None):
            raise RuntimeError("several\nlines")

    with pytest.raises(
        CheckFailed, match=r"it raised RuntimeError: several lines \(test_check_network.py, line \d+\)"
    ) as caught:
        check_network(Raises)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_local_class_is_not_pickled():
    class Local(Leaky):
        pass

    report = check_network(Local, skip=("check_compile",))
    assert report.skipped["check_pickle"] == "the class is defined within a function, where pickle cannot find it"


def test_options_that_a_factory_refuses_by_name_are_skipped():
    def factory(input_size, hidden_size, **options):
        if options.get("bidirectional"):
            raise NotImplementedError("bidirectional=True is not there yet")
        return ms.nn.RNN(input_size, hidden_size, **options)

    with pytest.raises(ms.testing.Skipped, match="bidirectional=True is not there yet"):
        ms.testing.check_bidirectional(factory)


def test_a_factory_that_takes_keywords_only_is_called_with_them():
    subject = Subject(partial(ms.nn.create, "rnn"))
    assert subject.sized
    assert subject.build(num_layers=2).num_layers == 2


def test_a_report_is_one_line():
    report = Report("Leaky", ["check_a", "check_b"], {"check_c": "why", "check_d": "because"})
    assert str(report) == "Leaky: 2 checks passed, 2 skipped (check_c, check_d)"
    assert str(Report("Leaky", ["check_a"])) == "Leaky: 1 checks passed, 0 skipped"


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (torch.nn.RNN(3, 4), "factory must be a class or a function that builds the network"),
        ("rnn", "factory must be a class or a function that builds the network"),
        (
            lambda one: one,
            "<lambda> must be called as <lambda>(input_size, hidden_size) or <lambda>()",
        ),
    ],
)
def test_what_is_no_factory_is_refused_in_one_line(factory, message):
    with pytest.raises(UserError) as caught:
        check_network(factory)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_check_is_refused_with_the_nearest():
    with pytest.raises(UserError, match="there is no check 'check_packd'; did you mean 'check_packed'?"):
        check_network(Leaky, skip=["check_packd"])


def test_every_check_is_public_and_says_what_it_asks():
    assert len(set(NAMES)) == len(NAMES)
    for check in CHECKS:
        assert getattr(ms.testing, check.__name__) is check
        assert check.__doc__.endswith(".")
        assert "\n" not in check.__doc__


def test_unknown_names_of_the_package_are_attribute_errors():
    with pytest.raises(AttributeError, match="check_nothing"):
        _ = ms.testing.check_nothing
    assert "check_network" in dir(ms.testing)
