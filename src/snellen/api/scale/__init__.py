"""Past one process: replicas that answer, what a cluster has, what a server can do."""
