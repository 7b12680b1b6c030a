"""A bot that says what to do."""


class DisappearedBoxError(Exception):
  """The object to be found is gone."""


class BabyAIBot:
  """Goes to the ball and takes it; it receives the action that was done."""

  def __init__(self, grid):
    self.grid, self.told = grid, []

  def replan(self, done=None):
    """The next action."""
    self.told.append(done)
    if self.grid.carrying is not None:
      raise DisappearedBoxError
    near = self.grid.away == 1
    return self.grid.actions.pickup if near else self.grid.actions.forward
