"""A run told to other trackers while it goes on and when it ends: JSON lines, TensorBoard, MLflow, Weights & Biases."""
