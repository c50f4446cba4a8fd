"""Makes a bare-metal GPU cluster match what Git says."""

__version__ = "0.1.0"
