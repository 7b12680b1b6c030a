"""Stands in for pyspiel: Kuhn poker."""

import types

_ENDS = ('pp', 'bb', 'bp', 'pbb', 'pbp')
_WORDS = ('Pass', 'Bet')


class _State:
  """Two cards, then passes and bets."""

  def __init__(self):
    self.cards, self.moves = [], ''

  def is_chance_node(self):
    """While cards are dealt."""
    return len(self.cards) < 2

  def chance_outcomes(self):
    """The chances of the next card."""
    left = [card for card in range(3) if card not in self.cards]
    return [(card, 1 / len(left)) for card in left]

  def current_player(self):
    """Whose turn it is."""
    return len(self.moves) % 2

  def legal_actions(self):
    """To pass, to bet."""
    return [0, 1]

  def action_to_string(self, player, action):
    """The word of an action, of any player."""
    del player
    return _WORDS[action]

  def apply_action(self, action):
    """A card, or a move."""
    if self.is_chance_node():
      self.cards.append(action)
    else:
      self.moves += 'pb'[action]

  def information_state_string(self, player):
    """The own card and all moves."""
    return f'{self.cards[player]}{self.moves}'

  def is_terminal(self):
    """After a pass on a bet, or two equal moves."""
    return self.moves in _ENDS

  def returns(self):
    """The higher card wins, or the player who has not passed."""
    stake = 2.0 if self.moves.endswith('bb') else 1.0
    first = self.cards[0] > self.cards[1]
    if self.moves in ('bp', 'pbp'):
      first = self.moves == 'bp'
    return [stake, -stake] if first else [-stake, stake]


def load_game(name, options):
  """Kuhn poker, the only game here."""
  assert name == 'kuhn_poker' and not options
  kind = types.SimpleNamespace(name='SEQUENTIAL')
  return types.SimpleNamespace(
    num_players=lambda: 2,
    get_type=lambda: types.SimpleNamespace(dynamics=kind),
    new_initial_state=_State,
  )
