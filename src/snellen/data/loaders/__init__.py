"""Loaders make Samples. Rows go through one line of modules, each of which knows only those before it:

row_source, row_map, option_texts, row_media, row_options, row_answers, row_dialogues, row_notes, row_reader,
authors_files, table.
"""
