"""Checkpoints run in this process: transformers and vLLM."""
