"""The court's trees, branches and logs on an EVM are those of pol.commitments, whatever memory they are in."""

from collections.abc import Callable, Iterator

import court_cases
import pytest
from eth_abi.abi import decode
from web3.contract import Contract

from anvil_node import anvil_node
from solidity import deploy

UNLIMITED = 10**12


@pytest.fixture(scope="module")
def court() -> Iterator[Contract]:
    with anvil_node("--gas-limit", str(UNLIMITED), "--no-request-size-limit") as url:
        yield deploy(url, court_cases.HARNESS, "CommitmentHarness")


@pytest.mark.parametrize("cases", [court_cases.merkle_branch, court_cases.checkpoint_log])
def test_the_court_answers_as_pol_does(court: Contract, cases: Callable[[], list[court_cases.Case]]) -> None:
    for data, expected in court_cases.together(cases()):
        output = court.w3.eth.call({"to": court.address, "data": data, "gas": UNLIMITED})
        if output != expected:
            (calls,) = decode(["bytes[]"], data[4:])
            answers = [zip(*decode(["bool[]", "bytes[]"], x), strict=True) for x in (output, expected)]
            wrong = [(c, is_, should) for c, is_, should in zip(calls, *answers, strict=True) if is_ != should]
            assert not wrong, (len(wrong), [tuple(map(str, case)) for case in wrong[:2]])


def test_the_comparison_notices_another_hash(court: Contract) -> None:
    data, expected = next(court_cases.together(court_cases.merkle_branch()[1:3]))
    changed = court_cases.call("each(bytes[])", [call[:-1] + b"\x01" for call in decode(["bytes[]"], data[4:])[0]])
    assert court.w3.eth.call({"to": court.address, "data": changed, "gas": UNLIMITED}) != expected
