"""Commands about workflows: plan, run, demo."""
