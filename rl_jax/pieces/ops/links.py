"""The third argument of links of pairs, and the makers of pairs that fill it.

A link has `margins`, the meaning of its third argument; a maker of pairs has
`gives`, what its edges hold beside who wins: MARGIN, CONFIDENCE or NOTHING.
"""

from typing import Any

# Of a link: the margin is subtracted from the difference of the scores, 0 does
# nothing; the difference is fitted to the margin; the margin is the logit of a
# probability; the argument is edges.confidence_NE; it is not read.
SUBTRACTED, FITTED, LOGIT = 'subtracted', 'fitted', 'logit'
CONFIDENCE, UNUSED = 'confidence', 'unused'
# Of a maker, beside CONFIDENCE.
MARGIN, NOTHING = 'margin', ''


def check_link(link: Any, gives: str, maker: str) -> None:
  """Raises ValueError if the link reads what the maker's edges do not hold."""
  name, reads = type(link).__name__, link.margins
  if reads == CONFIDENCE and gives != CONFIDENCE:
    raise ValueError(
      f'PairLoss.link = {name}() reads how sure the labels are, and {maker} '
      'does not say it (edges.confidence_NE): take pairs=SearchPairs(), or '
      'link=Sigmoid()'
    )
  if reads in (FITTED, LOGIT) and gives != MARGIN:
    raise ValueError(
      f'PairLoss.link = {name}() fits scores to margins, and {maker} gives '
      'none, so that both responses would be equally good: set its '
      'margin_scale, as in BestWorst(margin_scale=1.0), or take link=Sigmoid()'
    )
