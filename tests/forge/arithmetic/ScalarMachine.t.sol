// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Base} from "../Base.sol";
import {ArithmeticHarness, ScalarMachine} from "./ArithmeticHarness.sol";

contract ScalarMachineTest is Base {
    ArithmeticHarness private harness;

    /// @dev Result: input * 2 + 1, in integers.
    bytes private constant TWICE_PLUS_ONE = hex"010102" hex"00000001" hex"20000000" hex"20020100";

    function setUp() public {
        harness = new ArithmeticHarness();
    }

    function test_unknown_codes_revert() public {
        for (uint256 code = 0; code < 256; ++code) {
            bool known = (code > 0 && code < 0x0f) || (code >= 0x10 && code < 0x19) || (code >= 0x20 && code < 0x2d)
                || code == 0x30 || code == 0x31;
            if (known) continue;
            vm.expectRevert(abi.encodeWithSelector(ScalarMachine.InvalidInstruction.selector, code));
            harness.execute(uint8(code), 1, 2, 3);
        }
    }

    function test_invalid_programs_revert() public {
        expectInvalid(hex"", 0);
        expectInvalid(hex"0101", 0);
        expectInvalid(hex"010000", 2); // no instruction
        expectInvalid(hex"01fe02", 2); // 257 registers
        expectInvalid(
            hex"010001" // one byte short
            hex"310000",
            7
        );
        expectInvalid(
            hex"010001" // one byte too many
            hex"31000000" hex"00",
            7
        );
        expectInvalid(
            hex"010001" // reads its own result
            hex"31010000",
            4
        );
        expectInvalid(hex"010001" hex"20000100", 5);
        expectInvalid(hex"010001" hex"30000001", 6);
        expectInvalid(
            hex"010001" // an operand that MOV does not have
            hex"31000100",
            5
        );
        expectInvalid(hex"010001" hex"20000001", 6);
        expectInvalid(
            hex"010101" // the same, of registers that are there
            hex"00000000" hex"31000100",
            9
        );
        expectInvalid(hex"010101" hex"00000000" hex"20000001", 10);
        expectInvalid(hex"807f02", 2); // 257 registers, most of them constants
        vm.expectRevert(abi.encodeWithSelector(ScalarMachine.InvalidInstruction.selector, 0x0f));
        harness.run(hex"010001" hex"0f000000", new uint32[](1));
        vm.expectRevert(abi.encodeWithSelector(ScalarMachine.WrongInputCount.selector, 1));
        harness.run(TWICE_PLUS_ONE, new uint32[](2));
    }

    /// @dev 255 inputs and one instruction, which returns the last of them.
    function test_a_program_may_have_256_registers() public view {
        uint32[] memory inputs = new uint32[](255);
        inputs[254] = 7;
        vm.assertEq(harness.run(hex"ff0001" hex"31fe0000", inputs), 7);
    }

    function instructionAt(bytes calldata program, uint256 index) external pure returns (uint8 code) {
        (code,,,) = ScalarMachine.instruction(program, ScalarMachine.decode(program), index);
    }

    function test_an_instruction_past_the_end_is_refused() public {
        vm.assertEq(this.instructionAt(TWICE_PLUS_ONE, 1), ScalarMachine.ADD);
        vm.expectRevert(abi.encodeWithSelector(ScalarMachine.InvalidProgram.selector, TWICE_PLUS_ONE.length));
        this.instructionAt(bytes.concat(TWICE_PLUS_ONE), 2);
    }

    function arityOf(uint8 code) external pure returns (uint256) {
        return ScalarMachine.arity(code);
    }

    function test_unknown_codes_have_no_arity() public {
        uint8[7] memory unknown = [0x00, 0x0f, 0x19, 0x1f, 0x2d, 0x2f, 0x32];
        for (uint256 i = 0; i < unknown.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(ScalarMachine.InvalidInstruction.selector, unknown[i]));
            this.arityOf(unknown[i]);
        }
    }

    /// @dev Whatever gas it gets, the machine runs out of it or is right; and with enough it is right.
    function test_gas_never_changes_a_result() public view {
        sweep(ScalarMachine.FFMA, 0x3f800001, 0x3f7fffff, 0xbf800000, 0x337ffffe);
        sweep(ScalarMachine.FFMA, 0x00000001, 0x3f000001, 0x00000000, 0x00000001);
        sweep(ScalarMachine.FADD, 0x00800000, 0x80000001, 0, 0x007fffff);
        sweep(ScalarMachine.FDIV, 0x00000001, 0x40400000, 0, 0);
        sweep(ScalarMachine.FSQRT, 0x00000001, 0, 0, 0x1a3504f3);
        sweep(ScalarMachine.LTS, 0xffffffff, 0, 0, 1);
    }

    /// @dev The same for every primitive, at the first, the middle and the last of its cases.
    function test_gas_never_changes_a_result_of_any_primitive() public view {
        string memory json = vm.readFile("fixtures/vectors/primitives.json");
        string[] memory names = vm.parseJsonKeys(json, ".primitives");
        vm.assertEq(names.length, 38);
        for (uint256 i = 0; i < names.length; ++i) {
            string memory key = string.concat(".primitives.", names[i]);
            uint8 code = uint8(vm.parseJsonUint(json, string.concat(key, ".code")));
            string[] memory cases = vm.parseJsonStringArray(json, string.concat(key, ".cases"));
            for (uint256 j = 0; j < 3; ++j) {
                // In a call of its own: memory that a sweep has taken is never given back.
                this.sweepCase(code, parseWords(cases[(j * (cases.length - 1)) / 2]));
            }
        }
    }

    function sweepCase(uint8 code, uint32[] calldata words) external view {
        uint256 operands = words.length - 1;
        sweep(code, words[0], operands > 1 ? words[1] : 0, operands > 2 ? words[2] : 0, words[operands]);
    }

    function test_gas_never_changes_a_programs_result() public view {
        uint32[] memory inputs = new uint32[](1);
        inputs[0] = 20;
        sweepCall(abi.encodeCall(ArithmeticHarness.run, (TWICE_PLUS_ONE, inputs)), 41, 10_000);
    }

    function sweep(uint8 code, uint32 a, uint32 b, uint32 c, uint32 expected) private view {
        sweepCall(abi.encodeCall(ArithmeticHarness.execute, (code, a, b, c)), expected, 4_000);
    }

    function sweepCall(bytes memory input, uint32 expected, uint256 enough) private view {
        bool succeeded;
        for (uint256 gas = 0; gas <= enough; ++gas) {
            (bool success, bytes memory output) = address(harness).staticcall{gas: gas}(input);
            vm.assertTrue(success || !succeeded); // from the first success on, more gas does no harm
            succeeded = success;
            if (success) vm.assertEq(abi.decode(output, (uint32)), expected);
            else vm.assertEq(output.length, 0);
        }
        vm.assertTrue(succeeded);
    }

    function expectInvalid(bytes memory program, uint256 position) private {
        vm.expectRevert(abi.encodeWithSelector(ScalarMachine.InvalidProgram.selector, position));
        harness.run(program, new uint32[](1));
    }

    /// @dev Hex words of eight digits, separated by single spaces.
    function parseWords(string memory text) private pure returns (uint32[] memory words) {
        bytes memory digits = bytes(text);
        words = new uint32[]((digits.length + 1) / 9);
        for (uint256 i = 0; i < digits.length; ++i) {
            if (i % 9 == 8) continue;
            uint8 digit = uint8(digits[i]);
            words[i / 9] = words[i / 9] * 16 + (digit > 0x60 ? digit - 0x57 : digit - 0x30);
        }
    }
}
