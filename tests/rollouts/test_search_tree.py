"""Tree search by hand: PUCT, backup, pairs and their confidence."""

import pytest

from rl_jax.rollouts import search_tree
from rl_jax.rollouts.search_tree import Node, Search

SEARCH = Search(iterations=1, moves=1, depth=1, exploration=1.0, discount=1.0)


def played(search, values):
  """(the pairs, the nodes that asked); values: of children, by path."""
  names, asked = {}, []
  run = search.run()
  wanted = next(run)
  names[wanted] = ''
  while True:
    name = names[wanted]
    asked.append(name)
    children = [
      Node(value=v, prior=p, row=i)
      for i, (v, p) in enumerate(values.get(name, ()))
    ]
    names |= {c: f'{name}{i}' for i, c in enumerate(children)}
    try:
      wanted = run.send(children)
    except StopIteration as end:
      return [
        (names[p.best], names[p.worst], p.confidence) for p in end.value
      ], asked


def test_puct_by_hand():
  """0.6 + 0.3 sqrt(9) / (1 + 2) = 0.9."""
  node = Node(prior=0.3, parent=Node(visits=9), visits=2, score=0.6)
  assert SEARCH.puct(node) == pytest.approx(0.9)


def test_values_are_backed_up_by_hand():
  """Children (N 1, Q .5) and (N 2, Q ->): the leaf's Q is r = .9 - 0, its N 3;
  then V = (1 * .5 + 3 * .9) / 4 = .8."""
  root = Node()
  first = Node(parent=root, visits=1, score=0.5)
  leaf = Node(parent=root, visits=2, value=0.9)
  root.children = [first, leaf]
  SEARCH.back_up([root, leaf])
  assert (leaf.visits, leaf.score) == (3, pytest.approx(0.9))
  assert (root.visits, root.below) == (1, pytest.approx(0.8))


def test_unvisited_children_weigh_as_one():
  """max(1, N): (1 * 1 + 1 * 0) / 2."""
  root, other = Node(), Node(score=0.0)
  leaf = Node(parent=root, value=1.0)
  other.parent = root
  root.children = [leaf, other]
  SEARCH.back_up([root, leaf])
  assert root.below == pytest.approx(0.5)


def test_gains_telescope():
  """Q = r + gamma V, r = v - v of the parent: .5 + .5 (.9 - .5) = .7."""
  root = Node()
  step = Node(parent=root, value=0.5)
  leaf = Node(parent=step, value=0.9)
  root.children, step.children = [step], [leaf]
  half = Search(iterations=1, moves=1, depth=2, exploration=1.0, discount=0.5)
  half.back_up([root, step, leaf])
  assert leaf.score == pytest.approx(0.4)
  assert step.score == pytest.approx(0.7)
  assert root.below == pytest.approx(0.7)


@pytest.mark.parametrize(
  'best, worst, confidence',
  [(8, 2, 0.8), (3, 3, 0.5), (0, 0, 1.0), (0, 2, 1 / 3)],
)
def test_confidence_by_hand(best, worst, confidence):
  """1 / (1 + N_l / max(1, N_w)); no visits at all leave no doubt."""
  root = Node()
  root.children = [
    Node(parent=root, visits=best, score=1.0),
    Node(parent=root, visits=worst, score=0.0),
  ]
  (pair,) = search_tree.siblings(root)
  assert pair.best is root.children[0]
  assert pair.confidence == pytest.approx(confidence)


def test_equal_scores_make_no_pair():
  root = Node()
  root.children = [Node(parent=root, visits=n, score=1.0) for n in (1, 5)]
  assert not search_tree.siblings(root)


def test_a_search_by_hand():
  """Depth 1, four iterations from the prompt. The first child has U = 1 + .5 *
  1 after its parent's first visit, then sqrt(N) grows by two an iteration."""
  pairs, asked = played(SEARCH, {'': [(1.0, 0.5), (0.0, 0.5)]})
  assert asked == ['']
  # U of child 1 is .5 sqrt(7) = 1.32 at most, that of child 0 above 1.33.
  assert pairs == [('0', '1', 1.0)]


VALUES = {
  '': [(0.2, 0.5), (0.8, 0.5)],
  '0': [(0.3, 0.5), (0.4, 0.5)],
  '1': [(0.1, 0.5), (0.9, 0.5)],
}


def iterated(count):
  """The prompt after iterations of two steps at most, VALUES below it."""
  search = Search(iterations=1, moves=1, depth=2, exploration=1.0, discount=1.0)
  root = Node()
  for _ in range(count):
    run, children = search._iteration(root), None
    try:
      while True:
        asking = run.send(children)
        name = '' if asking is root else str(asking.row)
        children = [
          Node(value=v, prior=p, row=i) for i, (v, p) in enumerate(VALUES[name])
        ]
    except StopIteration:
      pass
  return root


def known(node):
  """(N, V, Q)."""
  return pytest.approx((node.visits, node.below, node.score))


def test_an_iteration_backs_up_once_by_hand():
  """Both steps of the path are opened in the first iteration.

  Child 1 has U = .8 + .5 sqrt(1) against .2 + .5; of its children Q = r = -.7
  and .1, as its V is 0. Back: Q(11) = .1; V(1) = (-.7 + .1) / 2 = -.3, Q(1) =
  .8 - .3; V = (.2 + .5) / 2.
  """
  root = iterated(1)
  assert known(root) == (2, 0.35, 0.0)
  assert known(root.children[0]) == (0, 0.0, 0.2)
  assert known(root.children[1]) == (1, -0.3, 0.5)
  assert known(root.children[1].children[1]) == (1, 0.0, 0.1)


def test_a_second_iteration_by_hand():
  """U(0) = .2 + .5 sqrt(3) against .5 + .5 sqrt(3) / 2, so child 0 is opened.

  Q = r = .1 and .2 of its children; V(0) = .15, Q(0) = .2 + .15; V = (.35 + .5)
  / 2. The prompt's visits rise by 2, those of the path by 1.
  """
  root = iterated(2)
  assert known(root) == (4, 0.425, 0.0)
  assert known(root.children[0]) == (1, 0.15, 0.35)
  assert known(root.children[1]) == (1, -0.3, 0.5)


@pytest.mark.parametrize('count', [1, 2, 3, 5])
def test_the_visits_of_a_node_are_iterations_through_it(count):
  root = iterated(count)
  assert root.visits == 2 * count
  assert sum(child.visits for child in root.children) == count


def test_exploration_visits_the_worse_child():
  """Large w: visits are even, so labels are not believed at all."""
  wide = Search(iterations=1, moves=1, depth=1, exploration=1e3, discount=1.0)
  pairs, _ = played(wide, {'': [(1.0, 0.5), (0.0, 0.5)]})
  assert pairs == [('0', '1', 0.5)]


def test_the_root_moves_to_the_most_visited_child():
  """Two moves: siblings of the second have the first's best as parent."""
  deep = Search(iterations=2, moves=2, depth=2, exploration=0.1, discount=1.0)
  values = {
    '': [(0.2, 0.5), (0.8, 0.5)],
    '0': [(0.2, 0.5), (0.2, 0.5)],
    '1': [(0.1, 0.5), (0.9, 0.5)],
    '11': [(0.9, 0.5), (0.9, 0.5)],
  }
  pairs, asked = played(deep, values)
  assert asked[:2] == ['', '1'] and '11' in asked
  assert [p[:2] for p in pairs] == [('1', '0'), ('11', '10')]


def test_later_gains_correct_a_first_value():
  """A step that looks worse but leads on is the better one."""
  deep = Search(iterations=4, moves=1, depth=2, exploration=2.0, discount=1.0)
  values = {
    '': [(0.6, 0.5), (0.4, 0.5)],
    '0': [(0.0, 0.5), (0.0, 0.5)],
    '1': [(1.0, 0.5), (1.0, 0.5)],
  }
  pairs, _ = played(deep, values)
  assert pairs[0][:2] == ('1', '0')


def test_without_children_a_node_is_an_end():
  """It is asked once."""
  pairs, asked = played(SEARCH, {})
  assert (pairs, asked) == ([], [''])


def test_a_constant_in_all_values_changes_nothing():
  """Visits by hand: 1, 1, 0, 2, where sqrt(N) is that of 1, 3, 5, 7 visits of
  the prompt; so the best has two, the worst one."""
  for shift in (0.0, 3.0):
    values = {'': [(v + shift, 0.5) for v in (0.3, 0.9, 0.1)]}
    pairs, _ = played(SEARCH, values)
    assert pairs == [('1', '2', pytest.approx(2 / 3))]
