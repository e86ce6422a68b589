"""Models behind the doors of clouds and gateways: addresses by region and project, signatures, tokens."""
