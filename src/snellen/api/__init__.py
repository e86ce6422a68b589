"""The functions of the root package: each ties the rooms together for one purpose."""
