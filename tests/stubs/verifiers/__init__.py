"""Stands in for verifiers 0.1: rollouts of several turns, and rubrics."""

import inspect


class Rubric:
  """Functions of a rollout's state, and their weights."""

  def __init__(self, funcs, weights):
    self._funcs, self._weights = funcs, weights

  async def score_rollout(self, state):
    """Writes the reward and each function's value into the state."""
    values = []
    for function in self._funcs:
      value = function(
        completion=state['completion'], answer=state['answer'], state=state
      )
      values.append(await value if inspect.isawaitable(value) else value)
    pairs = zip(values, self._weights, strict=True)
    state['reward'] = sum(x * weight for x, weight in pairs)
    names = [function.__name__ for function in self._funcs]
    state['metrics'] = dict(zip(names, values, strict=True))


class MultiTurnEnv:
  """Rollouts until a final response, or the most turns."""

  tools = None

  def __init__(self, dataset, eval_dataset, rubric, max_turns):
    self._rows, self._eval_rows = dataset, eval_dataset
    self.rubric, self._max_turns = rubric, max_turns

  def get_dataset(self):
    """Rows to train on."""
    return self._rows

  def get_eval_dataset(self):
    """Rows to evaluate."""
    return self._eval_rows

  async def env_response(self, messages, state):
    """Messages after the policy's."""
    raise NotImplementedError

  async def rollout(self, row, client, model, sampling_args=None):
    """The state at the end."""
    state = {**row, 'trajectory': [], 'error': None}
    messages = [*row['prompt']]
    while len(state['trajectory']) < self._max_turns:
      if state['trajectory']:
        messages += await self.env_response(messages, state)
      if 'final_env_response' in state:
        break
      found = await client.client.chat.completions.create(
        model=model, messages=messages, tools=self.tools, **sampling_args
      )
      (choice,) = found.choices
      state['trajectory'].append(choice)
      messages.append({'role': 'assistant', 'content': choice.message.content})
    state['completion'] = messages[len(row['prompt']) :]
    return state
