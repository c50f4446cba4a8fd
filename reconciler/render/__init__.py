"""Words, tables and colours for people, made from reason codes: nothing else in the program makes sentences."""
