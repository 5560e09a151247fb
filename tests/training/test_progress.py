"""The line that shows how far a training is: on a terminal, and nowhere else."""

import io

import mnemoscope as ms
from mnemoscope.training import fit
from mnemoscope.training import recording as module


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_quiet_in_pipes(capfd):
    fit(ms.nn.RNN(10, 6), ms.tasks.create("copy", delay=3), iterations=3, batch_size=4, test_size=5)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_sees_loss_score_and_baseline(monkeypatch):
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    task = ms.tasks.create("copy", delay=3)
    fit(ms.nn.RNN(10, 6), task, iterations=3, batch_size=4, test_size=5)
    shown = screen.getvalue()
    assert "rnn on copy" in shown
    assert "loss " in shown
    assert "score " in shown
    assert f"without memory {task.baseline:.3g}" in shown
