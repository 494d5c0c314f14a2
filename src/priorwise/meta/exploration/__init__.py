"""How a meta-learner explores: policies that collect data for an estimator, and which episodes play
which of them.

Moment estimators know the law of the pulls: uniform in all rounds
(:class:`~priorwise.policies.baselines.Uniform`), uniform in the first rounds only
(:class:`~priorwise.meta.exploration.policies.UniformThen`), one arm per block of episodes
(:class:`~priorwise.meta.exploration.plans.OneArmBlocks`), or the same two arms in two consecutive
episodes (:class:`~priorwise.meta.exploration.plans.PairedArms`). The last two differ from episode
to episode, which a policy cannot see: they are an
:class:`~priorwise.meta.exploration.plans.Exploration`, and say through ``segments`` which policy
plays how many episodes.
"""
