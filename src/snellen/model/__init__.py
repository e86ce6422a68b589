"""Request to Prediction: transport only."""
