// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice Where a posted run stands. `Withheld` and `Closed` are for good.
enum RunStatus {
    None,
    Open,
    Withheld,
    Closed
}

/// @notice A run, as posted.
/// @param publisher Who opened it, posts its heads and answers for its data.
/// @param size Entries of its log; 0 before the first post.
/// @param window Seconds in which a demand is to be answered.
/// @param logRoot Root of its log.
/// @param stake What answers for its availability, in wei.
/// @param posted When it was opened or last posted to.
/// @param exitDelay Seconds after `posted` in which demands can be made and the stake stays.
/// @param open Demands that are neither answered nor expired.
/// @param status Where it stands.
/// @param price What an answer costs at least, on top of gas, in wei.
struct Run {
    address publisher;
    uint64 size;
    uint32 window;
    bytes32 logRoot;
    uint128 stake;
    uint48 posted;
    uint32 exitDelay;
    uint32 open;
    RunStatus status;
    uint128 price;
}

/// @notice One leaf that somebody wants to see. The contract keeps its hash only.
/// @param id Of the run.
/// @param logRoot The head of the log when it was demanded, with `size`: an answer stays right however the log grows.
/// @param size Entries of that log.
/// @param index Which entry of the log, a complete root.
/// @param position Which entry of that state, counted on from 0 past the last one.
/// @param leaf Which leaf of that entry, counted on from 0 past the last one.
/// @param demander Who wants it.
/// @param deadline The last second for the answer.
/// @param bond What the answer earns, in wei.
struct Demand {
    bytes32 id;
    bytes32 logRoot;
    uint64 size;
    uint64 index;
    uint32 position;
    uint64 leaf;
    address demander;
    uint64 deadline;
    uint256 bond;
}

/// @notice A leaf and the way from it to the root of the log (docs/spec/complete_state.md, "Root").
/// @param name Name of the entry.
/// @param form What is hashed before the entry's tree: `02 || array type` or `0e || u64 length`.
/// @param leaf 256 bytes; none if the entry has none.
/// @param branch Of the leaf.
/// @param count Entries of the state.
/// @param entryBranch Of the entry.
/// @param logPath Inclusion path of the complete root.
struct Chunk {
    bytes name;
    bytes form;
    bytes leaf;
    bytes32[] branch;
    uint32 count;
    bytes32[] entryBranch;
    bytes32[] logPath;
}

/// @title ILearningLog
/// @notice Heads of learning records on chain, append-only, and a stake that their data can be had
/// (docs/spec/learning_log.md).
interface ILearningLog {
    /// @notice A run has been opened with a stake. `run` is its name in the learning record.
    event Opened(
        bytes32 indexed id,
        address indexed publisher,
        bytes32 run,
        uint256 stake,
        uint32 window,
        uint32 exitDelay,
        uint128 price
    );
    /// @notice The log of a run has `size` entries now.
    event Posted(bytes32 indexed id, uint64 size, bytes32 logRoot);
    /// @notice Somebody wants to see a leaf; `key` is the hash of the demand.
    event Demanded(bytes32 indexed id, bytes32 indexed key, Demand demand);
    /// @notice The leaf was shown: what the chain has checked of the answer, its branches left out.
    event Answered(
        bytes32 indexed id,
        bytes32 indexed key,
        address answerer,
        bytes32 completeRoot,
        bytes name,
        bytes form,
        uint32 count,
        bytes leaf
    );
    /// @notice The leaf was not shown in time; the bond went back.
    event Expired(bytes32 indexed id, bytes32 indexed key);
    /// @notice The run's data was withheld. The demander got `share` of the stake, the rest is burned.
    event DataWithheld(bytes32 indexed id, bytes32 indexed key, address demander, uint256 share, uint256 burned);
    /// @notice The publisher has taken the stake back; nothing can be demanded any more.
    event Closed(bytes32 indexed id, uint256 stake);

    /// @notice Zero is no run, no root and no log.
    error ZeroHash();
    /// @notice The publisher has opened this run already.
    error AlreadyOpen(bytes32 id);
    /// @notice The run isn't open: never opened, withheld or closed.
    error NotOpen(bytes32 id, RunStatus status);
    /// @notice The window has to last from a minute to 90 days.
    error InvalidWindow(uint32 window);
    /// @notice The exit delay has to last from one window to two years.
    error InvalidExitDelay(uint32 exitDelay);
    /// @notice The stake has to fit in 128 bits.
    error StakeTooHigh(uint256 stake);
    /// @notice Only the publisher may do this, or sign it.
    error NotPublisher(address caller);
    /// @notice The signature is malformed.
    error WrongSignature();
    /// @notice The log has `posted` entries already.
    error NotLonger(uint64 posted, uint64 size);
    /// @notice The log does not begin with the one that was posted.
    error NotAnExtension(uint64 posted, uint64 size);
    /// @notice The posted log has no such entry.
    error NoSuchEntry(uint64 index, uint64 size);
    /// @notice The bond has to pay for the answer.
    error BondTooLow(uint256 bond, uint256 expected);
    /// @notice Since `end` nothing can be demanded any more.
    error DemandsEnded(uint256 end);
    /// @notice The same demand is open.
    error AlreadyDemanded(bytes32 key);
    /// @notice No such demand is open.
    error NoSuchDemand(bytes32 key);
    /// @notice The time to answer is over.
    error TooLate(uint64 deadline);
    /// @notice The time to answer is not over.
    error TooEarly(uint64 deadline);
    /// @notice Until then only the publisher may answer.
    error PublisherFirst(uint256 until);
    /// @notice The leaf does not stand in the log at the place that was demanded.
    error NotInLog(bytes32 completeRoot);
    /// @notice The stake is locked until then.
    error StakeLocked(uint256 until);
    /// @notice Demands are open.
    error DemandsOpen(uint32 open);

    /// @notice Opens a run of the caller. The value sent is the stake that its data can be had.
    /// @param run The run's name in the learning record.
    /// @param window Seconds in which a demand is to be answered: the caller's own promise.
    /// @param exitDelay Seconds after the last post in which the promise holds.
    /// @param price What an answer costs at least, on top of gas.
    /// @return id Of the run on this contract.
    function open(bytes32 run, uint32 window, uint32 exitDelay, uint128 price) external payable returns (bytes32 id);

    /// @notice Posts a longer log, by the publisher.
    /// @param id Of the run.
    /// @param size Entries of the log.
    /// @param logRoot Its root (RFC 9162).
    /// @param path Consistency path from the log that was posted last; empty for the first one.
    function post(bytes32 id, uint64 size, bytes32 logRoot, bytes32[] calldata path) external;

    /// @notice As `post`, by anybody, with an EIP-712 signature `r || s || u8 v` of the publisher over `Head(bytes32
    /// id,uint64 size,bytes32 logRoot)`.
    function postSigned(bytes32 id, uint64 size, bytes32 logRoot, bytes32[] calldata path, bytes calldata signature)
        external;

    /// @notice Demands one leaf of a posted checkpoint. The value sent is the bond: it goes to whoever answers, all of
    /// it.
    /// @dev Every position and leaf exists: both count on from 0 past the last one. So nothing about the state has to
    /// be known.
    function demand(bytes32 id, uint64 index, uint32 position, uint64 leaf) external payable returns (bytes32 key);

    /// @notice Answers a demand and earns its bond. In the first half of the window only the publisher may.
    function answer(Demand calldata d, Chunk calldata chunk) external;

    /// @notice Ends a demand that was not answered in time: the bond goes back, and the run's stake is slashed if it
    /// isn't yet.
    function expire(Demand calldata d) external;

    /// @notice Takes the stake back, by the publisher, after the exit delay and once no demand is open.
    function close(bytes32 id) external;

    /// @notice A run as posted.
    function runOf(bytes32 id) external view returns (Run memory);

    /// @notice The least bond of a demand in this block.
    function bondOf(bytes32 id) external view returns (uint256);

    /// @notice Is the demand with this hash neither answered nor expired?
    function isOpen(bytes32 key) external view returns (bool);

    /// @notice `keccak256(abi.encode(chain id, this contract, publisher, run))`.
    function computeId(address publisher, bytes32 run) external view returns (bytes32);
}
