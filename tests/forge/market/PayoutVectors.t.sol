// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Claim, DataDemand, ForcedErrors, LogProof, Look, MarketBase, Rerun, Terms, Witness} from "./MarketBase.sol";

/// @notice What `pol.incentives.payouts` computes is what the desks credit, for every row and odd amounts.
contract PayoutVectorsTest is MarketBase {
    /// @dev The amounts of a deal.
    struct Deal {
        uint128 workUnits;
        uint128 unitPrice;
        uint128 price;
        uint128 verifierFee;
        uint128 solverStake;
        uint128 verifierStake;
        uint128 bond;
        uint128 jackpot;
        bool profiled;
        uint32 looks;
    }

    uint256 private constant PLENTY = 1 << 118;

    string private _json;
    string private _path;
    Deal private _deal;
    // Who is credited: submitter, solver, holder of the seat, challenger, fund, treasury.
    uint256[6] private _marked;
    address private _holder;
    address private _finder;
    bool private _repeated;

    function setUp() public override {
        _json = vm.readFile("fixtures/vectors/payouts.json");
        _read(0);
        super.setUp();
    }

    function test_escrows() public {
        for (uint256 i = 0; _begin(i); ++i) {
            vm.assertEq(settlement.escrowOf(_terms()), _amount("escrow"));
            uint256 before = vault.free(submitter);
            _submit();
            vm.assertEq(before - vault.free(submitter), _amount("escrow"));
        }
    }

    function test_verdicts_that_stand() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _toDisclosed(true);
            _settles("accepted");
            _begin(i);
            _toDisclosed(false);
            _settles("rejected");
            _begin(i);
            _repeated = true;
            _toDisclosed(false);
            _repeated = false;
            _settles("rejectedRepeated");
        }
    }

    function test_verdicts_that_are_challenged() public {
        for (uint256 i = 0; _begin(i); ++i) {
            // What is charged or planted beside a look: SecondLookTest.
            if (_deal.looks > 0) continue;
            _toDisclosed(true);
            _challenge();
            _finishes(false, "challengerRight");
            _begin(i);
            _toDisclosed(true);
            _challenge();
            _finishes(true, "challengerWrong");
            for (uint256 failures = 1; failures < 5; ++failures) {
                _challenge();
                _finish(true);
            }
            _challenge();
            _finishes(true, "challengerWrongAgain");
            _challenge();
            _finishes(false, "challengerRightAtLast");
            _begin(i);
            _toDisclosed(true);
            _challenge(nextVerifier);
            _challenge();
            uint256 first = game.disputes() - 1;
            _end(first, false);
            _mark();
            challenges.settleDispute(first + 1);
            _expectRow("challengeMoot");
        }
    }

    function test_profiles() public {
        for (uint256 i = 0; _begin(i); ++i) {
            if (!_deal.profiled) continue;
            _toProfiled();
            _mark();
            _conclude();
            _expectRow("profileConcluded");
            _begin(i);
            _toProfiled();
            _challengeProfile();
            _mark();
            _finishProfile(true);
            _expectRow("challengerWrong");
            _begin(i);
            _toProfiled();
            _challengeProfile();
            _challengeProfile();
            _mark();
            _endProfile(1, false);
            _expectRow("challengerRight");
            _mark();
            profiles.settleDispute(2);
            _expectRow("challengeMoot");
        }
    }

    function test_profiles_that_convict_themselves() public {
        for (uint256 i = 0; _begin(i); ++i) {
            if (!_deal.profiled) continue;
            _submit();
            _seat(verifier);
            _postUnderstated();
            Witness memory worst = _witness(WORST);
            _mark();
            _convict(challenger, worst, 1);
            _expectRow("profileConvicted");
        }
    }

    function test_planted_errors() public {
        for (uint256 i = 0; _begin(i); ++i) {
            // What is charged or planted beside a look: SecondLookTest.
            if (_deal.looks > 0) continue;
            _toWatchedWith(true, true);
            (, uint32 index,) = _duty();
            _watch(watcher, index, true);
            _mark();
            _disclose(verifier, true);
            vm.assertEq(abi.encode(_now()), abi.encode(_marked));
            _settle();
            _finder = watcher;
            _mark();
            _catch(watcher, index, true);
            _expectCatch();
        }
    }

    function test_secrets() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _toWatchedWith(true, true);
            _pass(20 minutes + 1);
            _mark();
            verdicts.claimUndisclosed(id);
            _expectRow("secretWithheld");
            _begin(i);
            _toWatchedWith(true, true);
            _mark();
            _reportLeak(challenger);
            _expectRow("secretLeaked");
        }
    }

    function test_defaults_of_solvers() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _toTrained();
            _mark();
            _pass(1 hours + 1);
            settlement.claimSolverDefault(id);
            _expectRow("solverDefaulted");
        }
    }

    function test_defaults_of_seats() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _toSeatedWith(false);
            _mark();
            _pass(30 minutes + 1);
            vm.prank(challenger);
            settlement.claimSeatDefault(id);
            _expectRow("seatDefaulted");
            _begin(i);
            _toTrained();
            _commit();
            _give(proofs.proof(id).round, "draw");
            _seat(verifier, ForcedErrors.commitment(verifier, id, secret));
            _abandons("abandonedSeated");
            _begin(i);
            _toTrained();
            _commit();
            _abandons("abandonedCommitted");
            if (!_deal.profiled) continue;
            _begin(i);
            _submit();
            _seat(verifier);
            _mark();
            _pass(30 minutes + 1);
            settlement.claimSeatDefault(id);
            _expectRow("profilerDefaulted");
        }
    }

    function test_data_withheld() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _toSeatedWith(false);
            _withholds("dataWithheld");
            _begin(i);
            _toDisclosed(true);
            _pass(_terms().challengeWindow);
            _withholds("dataWithheldAfterVerdict");
            _begin(i);
            _toSaid();
            _withholds("dataWithheldAfterWord");
            _begin(i);
            _toContradicted();
            _pass(_terms().challengeWindow);
            _withholds("dataWithheldAfterBoth");
        }
    }

    function test_words_that_the_solver_does_not_serve() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _toSaid();
            _mark();
            vm.prank(verifier);
            settlement.unserved(id);
            _expectRow("notServed");
            _begin(i);
            _toContradicted();
            _settles("acceptedContradicted");
        }
    }

    function _toSaid() private {
        _toTrained();
        _commit();
        _seatVerifier(nextVerifier, false);
        vm.prank(nextVerifier);
        settlement.unserved(id);
        _finder = nextVerifier;
        _seatVerifier(verifier, false);
    }

    function _toContradicted() private {
        _toSaid();
        _judge(verifier, true);
    }

    function test_cancelled() public {
        for (uint256 i = 0; _begin(i); ++i) {
            _toBiddingFor();
            _cancel("cancelledBidding");
            if (!_deal.profiled) continue;
            _begin(i);
            _submit();
            _cancel("cancelledUnseated");
            _begin(i);
            _submit();
            _seat(verifier);
            _cancel("cancelledSeated");
        }
    }

    /// @dev What is done pays this row.
    modifier pays(string memory row) {
        _mark();
        _;
        _expectRow(row);
    }

    function _settles(string memory row) private pays(row) {
        _settle();
    }

    function _finishes(bool asserterWon, string memory row) private pays(row) {
        _finish(asserterWon);
    }

    function _abandons(string memory row) private pays(row) {
        _pass(14 days + 1);
        settlement.abandon(id);
    }

    function _withholds(string memory row) private pays(row) {
        uint64 began = registry.task(id).began;
        uint64 deadline = uint64(vm.getBlockTimestamp()) + WINDOW;
        DataDemand memory d = DataDemand(id, began, 1, 0, 0, challenger, deadline, demands.bondOf());
        vm.prank(challenger);
        demands.demand(id, 1, 0, 0, d.bond);
        _pass(WINDOW + 1);
        demands.expire(d);
    }

    function _cancel(string memory row) private pays(row) {
        vm.prank(submitter);
        registry.cancel(id);
    }

    /// @dev A market of its own for every task: with other amounts, and clocks of other lengths.
    function _begin(uint256 index) private returns (bool more) {
        if (index == vm.parseJsonUint(_json, ".count")) return false;
        _read(index);
        super.setUp();
        address[7] memory accounts = [submitter, solver, verifier, nextVerifier, challenger, watcher, donor];
        for (uint256 i = 0; i < accounts.length; ++i) {
            vm.deal(accounts[i], PLENTY);
            vm.prank(accounts[i]);
            vault.deposit{value: PLENTY}(accounts[i], PLENTY);
        }
        vm.prank(donor);
        jackpot.donate(PLENTY / 2);
        (_price, _holder, _finder) = (_deal.price, verifier, challenger);
        return true;
    }

    function _read(uint256 index) private {
        _path = string.concat(".deals[", vm.toString(index), "]");
        _deal = Deal({
            workUnits: _field("work_units"),
            unitPrice: _field("unit_price"),
            price: _field("price"),
            verifierFee: _field("verifier_fee"),
            solverStake: _field("solver_stake"),
            verifierStake: _field("verifier_stake"),
            bond: _field("bond"),
            jackpot: _field("jackpot"),
            profiled: _field("profiled") == 1,
            looks: uint32(_field("looks"))
        });
    }

    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        if (!_deal.profiled) s = _exact(s);
        if (_deal.looks > 0) (s.looks, s.lookMargin) = (_deal.looks, 2);
        (s.workUnits, s.unitPrice) = (_deal.workUnits, _deal.unitPrice);
        (s.verifierFee, s.jackpot) = (_deal.verifierFee, _deal.jackpot);
        (s.solverStake, s.verifierStake, s.bond) = (_deal.solverStake, _deal.verifierStake, _deal.bond);
    }

    /// @dev In exact mode equal roots accept.
    function _claims(bool accepts) internal view override returns (Claim[] memory claims, LogProof[] memory logProofs) {
        (claims, logProofs) = super._claims((accepts && _deal.looks == 0) || !_deal.profiled);
        uint256 last = claims.length - 1;
        if (_repeated) {
            // What no look excuses, unless there is to be one.
            if (_deal.looks == 0) claims[last].references[0] = type(uint256).max;
            claims[last].replay = claims[last].end;
        }
        if (_deal.profiled) return (claims, logProofs);
        for (uint256 i = 0; i < claims.length; ++i) {
            claims[i].replay = claims[i].end;
            claims[i].distances = [uint256(0), 0, 0];
        }
        if (!accepts && !_repeated) claims[1].replay = "another";
    }

    /// @dev The last claim is looked at again; reruns that part as far excuse it.
    function _looksAt(Claim[] memory claims, bool accepts) internal view override returns (Look[] memory looks) {
        if (_deal.looks == 0) return looks;
        looks = new Look[](1);
        looks[0].segment = claims[claims.length - 1].segment;
        looks[0].reruns = new Rerun[](_deal.looks);
        uint256 parted = accepts ? 1 : 0;
        for (uint256 j = 0; j < _deal.looks; ++j) {
            looks[0].reruns[j] = Rerun(keccak256(abi.encode("look", j)), [parted, parted, 0]);
        }
    }

    function _toBiddingFor() private {
        _deal.profiled ? _toBidding() : _submit();
    }

    /// @dev Of two equal bids the earlier wins, and is paid what the second one asks for.
    function _toTrained() private {
        _toBiddingFor();
        bytes32 round = auction.lastRound(address(registry), id);
        _bid(round, solver);
        _bid(round, donor);
        _pass(_terms().bidWindow + 1);
        auction.reveal(round, donor, _price, _promise, salt);
        auction.reveal(round, solver, _price, _promise, salt);
        registry.award(id);
        vm.assertEq(registry.task(id).price, _deal.price);
    }

    function _bid(bytes32 round, address who) private {
        vm.prank(who);
        auction.bid(round, keccak256(abi.encode(round, who, _price, _promise, salt)));
    }

    function _toSeatedWith(bool forced) private {
        _toTrained();
        _commit();
        _seatVerifier(verifier, forced);
    }

    function _toWatchedWith(bool accepts, bool forced) private {
        _toSeatedWith(forced);
        _verdict(verifier, accepts);
        _openWatch();
    }

    function _toDisclosed(bool accepts) private {
        _toWatchedWith(accepts, false);
        _disclose(verifier, accepts);
    }

    /// @dev The witness is not the largest of the reruns.
    function _postUnderstated() private {
        (, bytes32 root,) = _measured();
        Witness memory low = _witness(0);
        Witness[3] memory witnesses = [low, low, low];
        vm.prank(verifier);
        profiles.post(id, _portions(), root, witnesses, "profile");
    }

    function _mark() private {
        _marked = _now();
    }

    function _now() private view returns (uint256[6] memory) {
        return [
            vault.free(submitter),
            vault.free(solver),
            vault.free(_holder),
            vault.free(_finder),
            vault.pot(address(jackpot), jackpot.FUND()),
            vault.free(treasury)
        ];
    }

    /// @dev The fund pays what is found, and is credited nothing.
    function _expectCatch() private view {
        uint256 share = _amount("errorFound.challenger");
        uint256[6] memory found = _now();
        vm.assertEq(found[3] - _marked[3], share);
        vm.assertEq(_marked[4] - found[4], share);
    }

    function _expectRow(string memory row) private view {
        string[6] memory names = ["submitter", "solver", "holder", "challenger", "fund", "treasury"];
        uint256[6] memory found = _now();
        for (uint256 i = 0; i < names.length; ++i) {
            uint256 expected = _amount(string.concat(row, ".", names[i]));
            vm.assertEq(found[i] - _marked[i], expected, string.concat(_path, row, names[i]));
        }
        // Nothing is left in between.
        vm.assertEq(vault.pot(address(settlement), id), 0);
    }

    function _field(string memory name) private view returns (uint128) {
        return uint128(_amount(name));
    }

    function _amount(string memory name) private view returns (uint256) {
        return vm.parseJsonUint(_json, string.concat(_path, ".", name));
    }
}
