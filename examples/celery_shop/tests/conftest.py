"""The app of the shop on Duetime's virtual time, with a ledger of its own for each test."""

from __future__ import annotations

import pytest
from shop import ledger
from shop.app import app as shop_app


@pytest.fixture
def duetime_app(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_DB", str(tmp_path / "shop.db"))
    return shop_app


@pytest.fixture
def bank(app):
    """The bank, which a test can break."""
    return lambda calls: ledger.break_down("bank", calls)
