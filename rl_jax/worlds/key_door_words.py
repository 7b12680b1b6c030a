"""The words of KeyDoor: actions and states."""

# Words of the actions, in the order of ACTIONS.
ACTIONS = ('up', 'down', 'left', 'right', 'take', 'open')
WORDS = {
  'letter': ('u', 'd', 'l', 'r', 't', 'o'),
  'word': ACTIONS,
  'phrase': (
    *('go up', 'go down', 'go left', 'go right'),
    *('take the key', 'open the door'),
  ),
}
MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))
HOLDS = '-ko'  # nothing, the key, the door is open
State = tuple[int, int, int]  # column, row, place in HOLDS


def observed(state: State) -> str:
  """Returns what the policy reads of a state, as '01k>'."""
  x, y, holds = state
  return f'{x}{y}{HOLDS[holds]}>'
