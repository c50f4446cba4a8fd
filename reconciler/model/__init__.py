"""Values only: manifest kinds, desired, observed, plan. No file, socket or process is touched here."""
