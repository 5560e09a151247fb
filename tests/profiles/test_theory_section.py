"""The section of a profile that shows what theory says."""

import mnemoscope as ms
from mnemoscope.core.references import REFERENCES
from mnemoscope.profiles import Context, Row, SectionRow
from mnemoscope.profiles.sections.theory import Theory
from mnemoscope.report.page import Section
from mnemoscope.theory.theorems import statements


def test_it_draws_a_table_for_each_subject():
    own, rows = Theory(), []
    for key, layer in (("a", ms.nn.LinearRNN(2, 6)), ("b", ms.nn.LSTM(2, 4)), ("c", ms.nn.GRU(2, 4))):
        assert own.reason_against(layer, Context()) is None
        result = own.run(layer, Context())
        found = {"theory": SectionRow(data=dict(result.data))}
        rows.append(Row(label=key.upper(), own_key=key, sections=found))
    section = own.draw(rows, ["a", "b"])
    assert isinstance(section, Section)
    assert [table.title for table in section.tables] == ["Theorems about A", "Theorems about B"]
    assert len(section.tables[0].rows) == len(statements(ms.nn.LinearRNN(2, 6)))
    assert section.headline.value == f"{len(section.tables[0].rows)} / {len(statements(ms.nn.LSTM(2, 4))) - 3}"
    assert "fisher memory, gradients, separation rank of B" in section.notes[0]
    assert own.draw(rows[2:], ["a"]) is None
    assert set(own.cited(rows)) <= set(REFERENCES)
