"""An OpenAI-compatible server with simulated readers and scripted faults, for tests and for trying things out."""
