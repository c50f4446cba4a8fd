"""The nodes' file systems: one base image, one thin layer a face, all cached by the digest of what made them."""
