"""Commands about replays: simulate, edc, sweep, policies, plot, generate, convert."""
