"""The parts of methods: functions of arrays."""
