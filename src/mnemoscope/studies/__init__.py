"""Claims, tables and figures of the documents: declared once, evaluated live."""
