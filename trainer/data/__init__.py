"""Training data: read it, judge it, split it, keep it tokenised. Nothing here needs torch."""
