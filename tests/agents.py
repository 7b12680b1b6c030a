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
