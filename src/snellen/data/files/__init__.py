"""Files on disk to rows and records, streamed in bounded memory; nothing in them is ever run."""
