"""A search tree over the steps of responses to one prompt: PUCT and values."""

from collections.abc import Generator
import dataclasses
import math


@dataclasses.dataclass(eq=False)
class Node:
  """A step of a response, or the prompt, which has no parent.

  row, end: the row of the group that holds it, and its tokens up to the end of
  the step. value: v. prior: p. ended: nothing can follow the step.
  """

  row: int = -1
  end: int = 0
  value: float = 0.0
  prior: float = 1.0
  ended: bool = False
  parent: 'Node | None' = None
  children: 'list[Node]' = dataclasses.field(default_factory=list)
  visits: int = 0  # N
  below: float = 0.0  # V
  score: float = 0.0  # Q

  @property
  def gain(self) -> float:
    """r = v - v of the parent."""
    return self.value - (self.parent.value if self.parent else 0.0)

  @property
  def depth(self) -> int:
    """Steps from the prompt."""
    return self.parent.depth + 1 if self.parent else 0


@dataclasses.dataclass(frozen=True)
class Pair:
  """Two siblings; confidence: that the first is better, by their visits."""

  best: Node
  worst: Node
  confidence: float


@dataclasses.dataclass(frozen=True)
class Search:
  """The constants of a search, see wrappers.TreeSearch."""

  iterations: int
  moves: int
  depth: int
  exploration: float
  discount: float

  def run(self) -> Generator[Node, list[Node], list[Pair]]:
    """Yields nodes that want children, is sent these, and returns the pairs.

    No children: nothing follows the node.
    """
    root, pairs = Node(), []
    for move in range(self.moves):
      for _ in range(self.iterations if move else 4 * self.iterations):
        yield from self._iteration(root)
      if not root.children:
        break
      pairs += siblings(root)
      root = max(root.children, key=lambda n: (n.visits, n.score, n.below))
    return pairs

  def _iteration(self, root: Node) -> Generator[Node, list[Node], None]:
    """Descends once from the root to the limit of depth, and backs up.

    The visits of the root rise by 2: one here, one in back_up.
    """
    root.visits += 1
    path = [root]
    while path[-1].children and not self._at_limit(path[-1], root):
      path.append(self._chosen(path[-1]))
    while not (path[-1].ended or self._at_limit(path[-1], root)):
      node = path[-1]
      children = yield node
      if not children:
        node.ended = True
        break
      for child in children:
        child.parent = node
        child.score = node.below + child.gain
      node.children = children
      path.append(self._chosen(node))
    self.back_up(path)

  def _at_limit(self, node: Node, root: Node) -> bool:
    return node.depth - root.depth >= self.depth

  def _chosen(self, node: Node) -> Node:
    """The first of the children with the largest PUCT."""
    return max(node.children, key=self.puct)

  def puct(self, node: Node) -> float:
    """Q + w p sqrt(N of the parent) / (1 + N)."""
    assert node.parent is not None
    bonus = node.prior * math.sqrt(node.parent.visits) / (1 + node.visits)
    return node.score + self.exploration * bonus

  def back_up(self, path: list[Node]) -> None:
    """Visits, V and Q from the end of a path to its start."""
    for place, node in enumerate(reversed(path)):
      if place:
        weights = [max(1, child.visits) for child in node.children]
        scores = [child.score for child in node.children]
        total = sum(n * q for n, q in zip(weights, scores, strict=True))
        node.below = total / sum(weights)
      node.visits += 1
      if node.parent is not None:
        node.score = node.gain + self.discount * node.below


def siblings(node: Node) -> list[Pair]:
  """The best child against the worst by Q; none if these are equal.

  Of equal Q: most visited or not, then v, then visits.
  """
  most = max(child.visits for child in node.children)
  ranked = sorted(
    node.children,
    key=lambda n: (n.score, n.visits == most, n.value, n.visits),
    reverse=True,
  )
  best, worst = ranked[0], ranked[-1]
  if best.score <= worst.score:
    return []
  confidence = 1.0 / (1.0 + worst.visits / max(1, best.visits))
  return [Pair(best, worst, confidence)]
