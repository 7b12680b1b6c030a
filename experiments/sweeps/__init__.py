"""Many runs: settings, execution on one machine or a cluster."""
