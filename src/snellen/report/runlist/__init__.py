"""Folders of runs to their list, without opening every database; and the trash that runs are moved to."""
