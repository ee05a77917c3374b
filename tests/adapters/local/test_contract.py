"""The local adapter keeps the contract."""

from adapter_contract import AdapterContract


class TestLocalContract(AdapterContract):
    """Run with real processes; the fixture `world` is in conftest."""
