CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

-- One row a sample that was asked, so that a run can be read and scored without its data source.
CREATE TABLE IF NOT EXISTS samples (
    task TEXT NOT NULL,
    id TEXT NOT NULL,
    position INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (task, id)
) STRICT;

-- One row a finished trial. `failed` rows are asked again by the next run and replaced.
CREATE TABLE IF NOT EXISTS predictions (
    task TEXT NOT NULL,
    sample TEXT NOT NULL,
    variant TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    digest TEXT NOT NULL,
    request BLOB NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (task, sample, variant, repeat)
) STRICT;

-- Every attempt that failed, also those that a retry mended.
CREATE TABLE IF NOT EXISTS attempts (
    task TEXT NOT NULL,
    sample TEXT NOT NULL,
    variant TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    status INTEGER,
    message TEXT NOT NULL,
    detail BLOB
) STRICT;

-- One row an answered turn of a trial that has several: committed before the next is asked. `looks` are what its request
-- showed for the first time. The last turn of a finished trial is also its row of `predictions`.
CREATE TABLE IF NOT EXISTS turns (
    task TEXT NOT NULL,
    sample TEXT NOT NULL,
    variant TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    digest TEXT NOT NULL,
    request BLOB NOT NULL,
    body BLOB NOT NULL,
    looks BLOB NOT NULL,
    UNIQUE (task, sample, variant, repeat, turn)
) STRICT;

-- Derived, rewritten whole by every scoring: never the source of truth.
CREATE TABLE IF NOT EXISTS scores (
    task TEXT NOT NULL,
    sample TEXT NOT NULL,
    variant TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    metric TEXT NOT NULL,
    value REAL,
    answer TEXT,
    rule TEXT,
    reason TEXT,
    detail BLOB,
    UNIQUE (task, sample, variant, repeat, metric)
) STRICT;
