"""Pure planning: desired and observed states in, one plan out. No clock, no file, no socket."""
