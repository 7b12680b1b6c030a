"""Devices, hosts, processes, signals and the compiler."""
