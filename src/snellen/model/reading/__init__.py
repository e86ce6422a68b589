"""What the embedded reader is made of: OCR engines, the order of lines on a page, an answerer that uses what was read."""
