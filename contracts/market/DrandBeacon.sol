// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "./IBeacon.sol";
import {G1Point, Quicknet} from "./Quicknet.sol";
import {RecordedBeacon} from "./RecordedBeacon.sol";

/// @title DrandBeacon
/// @notice Rounds of drand's network quicknet: every three seconds the League of Entropy signs the number of a round;
/// the seed is the hash of that signature. Anybody submits a signature; it is verified here. What it gives and what
/// not:
/// - Each round has one valid signature, so nobody who submits it, includes it or holds it back chooses a seed. Neither
///   solver nor
///   verifier nor a block producer can foresee or move it.
/// - Whoever holds a threshold of the League's keys knows all rounds beforehand. The whole beacon rests on that not
///   happening.
/// - If the League stops, rounds after its end never come; what waits for them waits for ever.
/// - A round is bound to a commitment by the clock of this chain. `delay` has to exceed by how much that clock can lie
///   behind the
///   world's when a transaction is included, and how long a block may still be replaced.
contract DrandBeacon is RecordedBeacon {
    /// @notice Two slots of 12 seconds: a block's time is that of its slot, and its content is known later.
    uint64 public constant MIN_DELAY = 24 seconds;
    /// @notice Hash of the network's parameters, as its relays name it.
    bytes32 public constant CHAIN_HASH = Quicknet.CHAIN_HASH;
    /// @notice When round 1 was due, in seconds since 1970.
    uint64 public constant GENESIS = Quicknet.GENESIS;
    /// @notice Seconds from round to round.
    uint64 public constant PERIOD = Quicknet.PERIOD;
    /// @notice Seconds after a commitment in which no round is bound to it.
    uint64 public immutable delay;

    /// @notice The delay is shorter than `MIN_DELAY`.
    error DelayTooShort(uint64 delay);

    /// @param delay_ Seconds that lie at least between a commitment and its round.
    /// @dev Verifies a round that was published long ago, so that the contract exists only where the precompiles do
    /// their work.
    constructor(uint64 delay_) {
        if (delay_ < MIN_DELAY) revert DelayTooShort(delay_);
        delay = delay_;
        // It reverts if anything is wrong; the seed itself is of no use here.
        // slither-disable-next-line unused-return
        Quicknet.seed(
            1_000,
            G1Point({
                xHigh: 0x144679b9a59af2ec876b1a6b1ad52ea9,
                xLow: 0xb1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39,
                yHigh: 0x11f92e4521ef54f047b64b85fa98db2d,
                yLow: 0x46f0f44add1f60b93f8a0dbddd63b34f238657c2d93aed18b90bddd60a01b6d2
            })
        );
    }

    /// @inheritdoc IBeacon
    function nextRound() external view returns (uint64) {
        uint256 time = block.timestamp + delay;
        return time < GENESIS ? 1 : uint64((time - GENESIS) / PERIOD + 2);
    }

    /// @inheritdoc IBeacon
    /// @dev Only a signature brings a seed: this succeeds once somebody has submitted it, and says else what is
    /// missing.
    function record(uint64 round) external view {
        if (recorded(round)) return;
        _requireDue(round);
        revert RoundNotRecorded(round);
    }

    /// @notice Records the seed of `round` by the network's signature, for anybody. A round that is already recorded
    /// keeps its seed, and that is a success, whatever is submitted. What is no point of the group costs all the gas
    /// that is sent along.
    function submit(uint64 round, G1Point calldata signature) external {
        if (recorded(round)) return;
        _requireDue(round);
        bytes32 value = Quicknet.seed(round, signature);
        _seeds[round] = value;
        emit Recorded(round, value);
    }

    /// @notice When `round` is due, in seconds since 1970; rounds count from 1.
    function timeOf(uint64 round) public pure returns (uint256) {
        return uint256(GENESIS) + uint256(round) * PERIOD - PERIOD;
    }

    /// @dev A signature that comes before its time shows that the clock of this chain lies behind: no round is safe
    /// then.
    function _requireDue(uint64 round) private view {
        if (timeOf(round) > block.timestamp) revert RoundNotReached(round);
    }
}
