"""The rules by which a reply is read, from what needs no understanding to what merely names an option."""
