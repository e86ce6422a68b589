"""Replies to answers: one ordered table of named rules for choices, and readers for yes/no, numbers and short texts.

In layers; a module knows those in the lines above its own, and left of it:

- `extraction`, `word_lists`: what reading yields; word lists of the catalog to patterns, each with an example
- `profiles`, `reply_text`, `phrases`: how others read; a raw reply as it is read; what several rules look for
- `places`, `numbers`, `polarity`: coordinates, quantities; what is said of an option
- `option_text`, `option_set`: the options of a question, ready to be found
- `structured`, `mentions`, `meant`: answers in fields; where options are named; which of them is meant
- `yes_or_no`, `cue`, `valued`, `whole_reply`, `without_cue`, `in_words`, `edge_sentences`: the rules
- `choice`, `other_kinds`: the table of rules, and the readers that others call
"""
