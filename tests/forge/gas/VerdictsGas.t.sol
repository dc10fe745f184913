// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {PATIENCE} from "../../../contracts/market/IBeacon.sol";
import {Disclosure, Look, Placed} from "../../../contracts/market/IVerdicts.sol";
import {Claim, LogProof} from "../../../contracts/market/TaskTypes.sol";
import {MarketGasBase} from "./MarketGasBase.sol";

/// @notice Gas of the calls about a verdict and its settlement, on record in .ci/gas.json.
contract VerdictsGas is MarketGasBase {
    function test_verdict_post() public metered {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        Look[] memory none = new Look[](0);
        _begin(verifier);
        verdicts.post(id, claims, logProofs, none, "nothing");
    }

    function test_verdict_replace_round() public metered {
        _toVerifying(false);
        _verdict(verifier, true);
        _pass(PATIENCE + 1);
        _begin(verifier);
        verdicts.replaceRound(id);
    }

    function test_verdict_open_watch() public metered {
        _toVerifying(false);
        _verdict(verifier, true);
        _give(verdicts.verdict(id).watchRound, "watch");
        _begin(verifier);
        verdicts.openWatch(id);
    }

    function test_verdict_watch() public metered {
        _toWatched(true, false);
        vm.warp(verdicts.verdict(id).watchUntil);
        _begin(watcher);
        jackpot.watch(id, 0, "commitment");
    }

    function test_verdict_disclose() public metered {
        _meterDisclosure(false);
    }

    function test_verdict_disclose_an_error() public metered {
        _meterDisclosure(true);
    }

    function test_verdict_claim_undisclosed() public metered {
        _toWatched(true, false);
        _pass(_terms().watchWindow + _terms().disclosureWindow + 1);
        _begin(submitter);
        verdicts.claimUndisclosed(id);
    }

    function test_verdict_report_leak() public metered {
        _toWatched(true, false);
        _announceLeak(challenger, secret);
        _begin(challenger);
        verdicts.reportLeak(id, secret);
    }

    function test_verdict_announce_leak() public metered {
        _begin(challenger);
        verdicts.announce("digest");
    }

    function test_settle_accepted() public metered {
        _meterSettlement(true);
    }

    function test_settle_rejected() public metered {
        _meterSettlement(false);
    }

    function test_settle_collect() public metered {
        _toWatched(true, true);
        (, uint32 index, bytes32 wrong) = _duty();
        _watch(watcher, index, true);
        _disclose(verifier, true);
        (Claim[] memory claims,) = _claims(true);
        Placed memory stands = Placed(claims[index], 0, _entries(true, false));
        (claims,) = _claims(true);
        claims[index].replay = wrong;
        bytes memory evidence = abi.encode(Placed(claims[index], 0, _entries(true, true)), stands);
        uint32 number = registry.task(id).seating;
        _settle();
        _begin(watcher);
        jackpot.claim(id, number, watcher, 0, index, salt, evidence);
    }

    function test_settle_sweep() public metered {
        _toContested(true);
        _settle();
        _pass(CATCH_WINDOW + 1);
        _begin(donor);
        jackpot.sweep(id);
    }

    function _meterDisclosure(bool forced) private {
        _toWatched(true, forced);
        vm.warp(verdicts.verdict(id).watchUntil + 1);
        Disclosure memory d = _disclosure(true);
        _begin(verifier);
        verdicts.disclose(id, d);
    }

    function _meterSettlement(bool accepts) private {
        _toContested(accepts);
        _pass(_terms().challengeWindow + 1);
        _begin(solver);
        settlement.settle(id);
    }
}
