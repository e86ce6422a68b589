"""Long documents as page images: rendered, degraded, with needles."""
