"""The local adapter keeps the contract."""

from adapter_contract import AdapterContract


class TestLocalContract(AdapterContract):
    """With real processes; the fixture `world` is in conftest."""
