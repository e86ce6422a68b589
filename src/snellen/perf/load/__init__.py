"""A load job to stamped outcomes: schedules, connections, generators, processes."""
