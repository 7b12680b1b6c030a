"""What everything stands on: devices, hosts and the compiler."""
