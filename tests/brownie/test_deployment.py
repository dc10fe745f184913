"""Brownie's own tests (`brownie test` on a fresh test chain): its compiled contracts at a deployment's addresses."""

import pytest
from web3.exceptions import ContractCustomError

from brownie import DisputeGame, Sortition, StakeVault, accounts
from contracts.scripts import deploy


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("deployments"))


@pytest.fixture(scope="module")
def desks(folder):
    return deploy.main("3", folder=folder)


def test_a_second_run_sends_nothing(desks, folder):
    before = accounts[3].nonce
    assert deploy.main("3", folder=folder) == desks
    assert accounts[3].nonce == before > 0


def test_money_comes_in_answers_for_tickets_and_goes_out(desks):
    vault, sortition = StakeVault.at(desks["vault"]), Sortition.at(desks["sortition"])
    assert vault.wired()
    assert all(vault.isDesk(desk) for name, desk in desks.items() if name != "vault" and not name.endswith("game"))
    vault.deposit(accounts[1], 10**18, {"from": accounts[1], "value": 10**18})
    sortition.enrol(2, {"from": accounts[1]})
    assert vault.free(accounts[1]) == 10**18 - 2 * sortition.unit()
    with pytest.raises(ContractCustomError):  # Brownie's `reverts` knows no custom errors
        vault.withdraw(accounts[1], 10**18, {"from": accounts[1]})
    vault.withdraw(accounts[1], vault.free(accounts[1]), {"from": accounts[1]})
    assert vault.free(accounts[1]) == 0


def test_games_know_their_judges(desks):
    assert DisputeGame.at(desks["game"]).market() == desks["challenges"]
    assert DisputeGame.at(desks["profile_game"]).market() == desks["profiles"]
