"""The embedded reader: OCR engines, reading order, and a small answerer."""
