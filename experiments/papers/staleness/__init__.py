"""How rollouts from the weights of several iterations ago change learning."""
