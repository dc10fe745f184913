// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clock, Side} from "../../../contracts/dispute/Clock.sol";
import {DisputeGame, SlotProof} from "../../../contracts/dispute/DisputeGame.sol";
import {OneStep} from "../../../contracts/dispute/OneStep.sol";
import {Opening} from "../../../contracts/dispute/Opening.sol";
import {hashPosition, Position} from "../../../contracts/dispute/Position.sol";
import {StartParams} from "../../../contracts/interfaces/IDisputeGame.sol";
import {Base} from "../Base.sol";
import {IJsonRecords} from "../commitments/CommitmentVectors.t.sol";
import {Resolver} from "./Resolver.sol";

/// @notice Games that `pol.dispute` played, recorded by tests/dispute/test_position_vectors.py: the contract follows them
/// move by move, to the same hashes, the same turns and the same end.
contract PositionVectorsTest is Base {
    struct Start {
        uint8 kind;
        uint8 component;
        uint64 firstStep;
        uint64 steps;
        bytes32 start;
        bytes32 end;
        bytes32 x;
        bytes32 y;
        uint256 sum;
    }

    /// @dev Of a game or a move.
    struct Name {
        string name;
    }

    IJsonRecords private constant TYPES = IJsonRecords(address(vm));
    // Keys as the file has them. A type called like a struct of the project would need that struct's names.
    string private constant OPENING =
        "Opened(uint32 list_count,bytes leaf,bytes32[] leaf_branch,bytes32[] list_branch)";
    string private constant POSITION = "Position(uint8 level,uint8 height,uint32 count,uint64 lo,uint64 hi,bytes32 agreed,"
        "bytes32 claimed,bytes32 opening,bytes32 pre,bytes32 trace,bytes32 descriptor,uint64 step,uint32 node,"
        "uint64 element,uint64 term,uint64 terms,uint32 init,uint8 instructions,uint8 instruction)";
    string private constant START = "Start(uint8 kind,uint8 component,uint64 firstStep,uint64 steps,bytes32 start,"
        "bytes32 end,bytes32 x,bytes32 y,uint256 sum)";

    string private json;
    uint256 private games;
    address private asserter;
    address private challenger;
    Resolver private resolver;
    DisputeGame private game;

    function setUp() public {
        json = vm.readFile("fixtures/vectors/positions.json");
        games = abi.decode(TYPES.parseJsonTypeArray(json, ".games", "Game(string name)"), (Name[])).length;
        asserter = account("asserter");
        challenger = account("challenger");
        resolver = new Resolver();
        game = new DisputeGame(address(resolver), new OneStep());
    }

    function test_there_are_games() public view {
        vm.assertGt(games, 8);
    }

    function test_hashes_are_those_of_the_fields() public view {
        for (uint256 i = 0; i < games; ++i) {
            this.hashGame(_game(i));
        }
    }

    function test_the_contract_plays_the_games() public {
        for (uint256 i = 0; i < games; ++i) {
            this.playGame(_game(i));
        }
    }

    /// @dev A call of its own for every game: each reading of the file takes memory as large as the file.
    function hashGame(string calldata key) external view {
        (Position[] memory positions, bytes32[] memory hashes) = _positions(key);
        for (uint256 i = 0; i < positions.length; ++i) {
            vm.assertEq(hashPosition(positions[i]), hashes[i], key);
            vm.assertEq(keccak256(abi.encode(positions[i])), hashes[i], key);
        }
    }

    /// @dev As `hashGame`.
    function playGame(string calldata key) external {
        (Position[] memory positions, bytes32[] memory hashes) = _positions(key);
        string[] memory turns = vm.parseJsonStringArray(json, string.concat(key, ".turns"));
        Name[] memory moves =
            abi.decode(TYPES.parseJsonTypeArray(json, string.concat(key, ".moves"), "Move(string move)"), (Name[]));
        vm.assertEq(moves.length, positions.length);
        vm.assertEq(turns.length, positions.length);
        uint256 id = _start(key);
        for (uint256 i = 0; i < moves.length; ++i) {
            vm.assertEq(game.positionHash(id), hashes[i], string.concat(key, " before move ", vm.toString(i)));
            bool asserters = _same(turns[i], "asserter");
            (, Clock memory clock) = game.dispute(id);
            vm.assertTrue(clock.turn == (asserters ? Side.ASSERTER : Side.CHALLENGER), key);
            vm.startPrank(asserters ? asserter : challenger);
            _move(id, positions[i], moves[i].name, string.concat(key, ".moves[", vm.toString(i), "]"));
            vm.stopPrank();
        }
        (uint256 calls, uint256 answered,, bool asserterWon) = resolver.answer();
        vm.assertEq(calls, id, key);
        vm.assertEq(answered, id, key);
        vm.assertEq(asserterWon, TYPES.parseJsonBool(json, string.concat(key, ".asserter_won")));
    }

    function _game(uint256 index) private pure returns (string memory) {
        return string.concat(".games[", vm.toString(index), "]");
    }

    function _positions(string memory key) private view returns (Position[] memory positions, bytes32[] memory hashes) {
        positions = abi.decode(TYPES.parseJsonTypeArray(json, string.concat(key, ".positions"), POSITION), (Position[]));
        hashes = vm.parseJsonBytes32Array(json, string.concat(key, ".hashes"));
        vm.assertGt(positions.length, 0);
        vm.assertEq(hashes.length, positions.length);
    }

    function _start(string memory key) private returns (uint256) {
        Start memory s = abi.decode(TYPES.parseJsonType(json, string.concat(key, ".start"), START), (Start));
        StartParams memory params;
        params.asserter = asserter;
        params.challenger = challenger;
        params.program = vm.parseJsonBytes32(json, ".program");
        params.constants = vm.parseJsonBytes32(json, ".constants");
        (params.kind, params.component, params.firstStep, params.steps) = (s.kind, s.component, s.firstStep, s.steps);
        (params.start, params.end, params.x, params.y, params.sum) = (s.start, s.end, s.x, s.y, s.sum);
        params.clock = 1000;
        return resolver.start(game, params, vm.parseJsonBytes(json, ".header"));
    }

    /// @param key Where the move is: a record with the fields of its class in `pol.dispute.moves`.
    function _move(uint256 id, Position memory p, string memory move, string memory key) private {
        if (_same(move, "Open")) {
            game.open(id, p, vm.parseJsonBytes(json, string.concat(key, ".payload")));
        } else if (_same(move, "Pick")) {
            bytes memory payload = vm.parseJsonBytes(json, string.concat(key, ".payload"));
            game.pick(id, p, vm.parseJsonUint(json, string.concat(key, ".index")), payload);
        } else if (_same(move, "PickState")) {
            game.pickState(id, p);
        } else if (_same(move, "Describe")) {
            _describe(id, p, key);
        } else if (_same(move, "DescribeSlot")) {
            _describeSlot(id, p, key);
        } else if (_same(move, "ProveStep")) {
            _proveStep(id, p, key);
        } else if (_same(move, "ProveSlot")) {
            SlotProof memory proof = abi.decode(
                TYPES.parseJsonType(
                    json,
                    key,
                    "ProveSlot(bytes header,bytes descriptor,bytes32[] descriptor_branch,bytes32[] trace_branch)"
                ),
                (SlotProof)
            );
            game.proveSlot(id, p, proof);
        } else {
            vm.assertTrue(_same(move, "ProveSum"), move);
            _proveSum(id, p, key);
        }
    }

    function _describe(uint256 id, Position memory p, string memory key) private {
        bytes32[] memory branch = vm.parseJsonBytes32Array(json, string.concat(key, ".branch"));
        bytes memory descriptor = vm.parseJsonBytes(json, string.concat(key, ".descriptor"));
        game.describe(id, p, branch, descriptor, vm.parseJsonBytes32(json, string.concat(key, ".tree")));
    }

    function _describeSlot(uint256 id, Position memory p, string memory key) private {
        bytes memory header = vm.parseJsonBytes(json, string.concat(key, ".header"));
        bytes32[] memory branch = vm.parseJsonBytes32Array(json, string.concat(key, ".branch"));
        game.describeSlot(id, p, header, branch, vm.parseJsonBytes(json, string.concat(key, ".descriptor")));
    }

    function _proveStep(uint256 id, Position memory p, string memory key) private {
        bytes memory descriptor = vm.parseJsonBytes(json, string.concat(key, ".descriptor"));
        bytes memory values = vm.parseJsonBytes(json, string.concat(key, ".values"));
        Opening[] memory openings =
            abi.decode(TYPES.parseJsonTypeArray(json, string.concat(key, ".openings"), OPENING), (Opening[]));
        game.proveStep(id, p, descriptor, values, openings);
    }

    function _proveSum(uint256 id, Position memory p, string memory key) private {
        bytes memory descriptor = vm.parseJsonBytes(json, string.concat(key, ".descriptor"));
        game.proveSum(id, p, descriptor, _opening(string.concat(key, ".x")), _opening(string.concat(key, ".y")));
    }

    function _opening(string memory key) private view returns (Opening memory) {
        return abi.decode(TYPES.parseJsonType(json, key, OPENING), (Opening));
    }

    function _same(string memory a, string memory b) private pure returns (bool) {
        return keccak256(bytes(a)) == keccak256(bytes(b));
    }
}
