"""Claims, tables and figures of the documents: declared once, evaluated live."""

from mnemoscope.studies import claims

__all__ = ["claims"]
