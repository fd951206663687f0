"""The Bayesian linear information filtering problem: model, bounds, policies, simulation."""
