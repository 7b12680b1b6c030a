"""The effect on learning of rollouts from weights of several iterations ago."""
