"""Agent code against a chat client, as users write it; some of it is wrong."""

import asyncio
import os


def ask(client, messages):
  """The content of the reply."""
  found = client.chat.completions.create(model='any', messages=messages)
  return found.choices[0].message.content


def twice(client, example):
  """Asks for a first answer, then for a second one; the longer one counts."""
  messages = [{'role': 'user', 'content': example.prompt}]
  first = ask(client, messages)
  messages.append({'role': 'assistant', 'content': first})
  messages.append({'role': 'user', 'content': '+='})
  second = ask(client, messages)
  return max(first, second, key=len)


async def twice_in_turn(policy, example):
  """The same as a coroutine; it waits for something else, too."""
  messages = [{'role': 'user', 'content': example.prompt}]
  first = await policy(messages)
  await asyncio.sleep(0.01)
  messages.append({'role': 'assistant', 'content': first})
  messages.append({'role': 'user', 'content': '+='})
  second = await policy(messages)
  return max(first, second, key=len)


async def forgetful_in_turn(policy, example):
  """Its second call has not the first one's messages."""
  await policy([{'role': 'user', 'content': example.prompt}])
  return await policy([{'role': 'user', 'content': '1='}])


async def other_in_turn(policy, example):
  """What it says second is of its process."""
  messages = [{'role': 'user', 'content': example.prompt}]
  messages.append({'role': 'assistant', 'content': await policy(messages)})
  messages.append({'role': 'user', 'content': str(os.getpid())})
  messages.append({'role': 'assistant', 'content': await policy(messages)})
  messages.append({'role': 'user', 'content': '='})
  return await policy(messages)


async def silent_in_turn(policy, example):
  """Returns without a call."""
  return 'x'


async def failing_in_turn(policy, example):
  """Raises after its first call."""
  await policy([{'role': 'user', 'content': example.prompt}])
  raise KeyError('own')


def forgetful(client, example):
  """Its second call has not the first one's messages."""
  ask(client, [{'role': 'user', 'content': example.prompt}])
  return ask(client, [{'role': 'user', 'content': '1='}])


def summarizing(client, example):
  """Its second call has the first question and a summary of the answer."""
  question = {'role': 'user', 'content': example.prompt}
  first = ask(client, [question])
  ask(client, [question, {'role': 'user', 'content': f'{len(first)}+='}])
  return first


def repeating(client, example):
  """Its second call has nothing new."""
  messages = [{'role': 'user', 'content': example.prompt}]
  first = ask(client, messages)
  return ask(client, [*messages, {'role': 'assistant', 'content': first}])


def silent(client, example):
  """Never calls."""
  del client
  return example.prompt


def failing(client, example):
  """Fails after its call."""
  ask(client, [{'role': 'user', 'content': example.prompt}])
  raise KeyError('own')


def numeric(client, example):
  """Returns no text."""
  ask(client, [{'role': 'user', 'content': example.prompt}])
  return 3


def lonely(client):
  """Takes too few arguments."""
  return client


def noted(path, text):
  """Writes down that it is called; how often, and the text."""
  with open(path, 'a+') as file:
    file.write('x')
    return [file.tell(), text]


async def noted_later(path, text):
  """The same after a moment."""
  await asyncio.sleep(0.01)
  return noted(path, text)


async def calling(policy, example):
  """Calls before, between and after its turns, two of them at the same time."""
  path = os.environ['NOTED']
  first, text = await policy.call(noted, path, 'start')
  messages = [{'role': 'user', 'content': f'{first}{text}'}]
  said = await policy(messages)
  later, sooner = await asyncio.gather(
    policy.call(noted_later, path, said), policy.call(noted, path, 'b')
  )
  messages.append({'role': 'assistant', 'content': said})
  text = f'{later[1]} {sooner[1]}'
  messages.append({'role': 'user', 'content': text})
  said = await policy(messages)
  return str((await policy.call(noted, path, said))[1])


async def counting(policy, example):
  """The first question is a call's answer, and so is the second."""
  length = await policy.call(len, example.prompt)
  messages = [{'role': 'user', 'content': f'{length}='}]
  messages.append({'role': 'assistant', 'content': await policy(messages)})
  more = await policy.call(sum, [length, 1])
  messages.append({'role': 'user', 'content': f'{more}='})
  return await policy(messages)


def not_json():
  """An answer that JSON does not have."""
  return {1, 2}


def not_finite():
  """A number that JSON does not have."""
  return float('nan')


def long():
  """An answer that is too long."""
  return 'x' * 50_000


def broken():
  """Raises."""
  raise OSError('no network')


async def failing_calls(policy, example):
  """Says what was wrong with each call."""
  said = []
  for function in (not_json, not_finite, long, broken):
    try:
      await policy.call(function)
    except Exception as error:
      said.append(f'{type(error).__name__}: {error}')
  return await policy([{'role': 'user', 'content': ' | '.join(said)}])


async def calling_for_ever(policy, example):
  """Never has a turn."""
  while True:
    await policy.call(max, 1, 2)
