"""What few need: each folder is a kit that registers its commands, pages and names; the core imports none of them."""
