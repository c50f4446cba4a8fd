"""The packages that nodes install: what they are (catalogues), how they are built, and the repositories of them."""
