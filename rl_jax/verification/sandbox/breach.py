"""The error of a task that can no longer be trusted to judge."""


class BreachError(RuntimeError):
  """A response may have changed what judges responses: the run must end."""
