"""Batsim's protocol, both ways: its decision components over our engine, and our policies under Batsim."""
