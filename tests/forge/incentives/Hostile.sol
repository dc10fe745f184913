// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {HookCoin, IHooked} from "./Tokens.sol";

/// @notice A party whose code calls back while its money moves, or refuses it.
contract Hostile is IHooked {
    StakeVault private immutable vault;
    address private target;
    bytes private callback;
    bool private refuses;
    bool private entered;
    uint256 public tries;
    uint256 public successes;
    bytes public answer;

    constructor(StakeVault vault_) payable {
        vault = vault_;
        address asset = vault_.asset();
        if (asset != address(0)) {
            HookCoin(asset).hook();
            IERC20(asset).approve(address(vault_), type(uint256).max);
        }
    }

    /// @notice What to do once while money moves.
    function plan(address target_, bytes calldata callback_) external {
        (target, callback, entered) = (target_, callback_, false);
    }

    function refuse(bool refuses_) external {
        refuses = refuses_;
    }

    function deposit(uint256 amount) external {
        vault.deposit{value: vault.asset() == address(0) ? amount : 0}(address(this), amount);
    }

    function withdraw(uint256 amount) external {
        vault.withdraw(address(this), amount);
    }

    function onMove() public {
        if (entered || target == address(0)) return;
        entered = true;
        bool done;
        (done, answer) = target.call(callback);
        ++tries;
        if (done) ++successes;
    }

    receive() external payable {
        if (refuses) revert("no");
        onMove();
    }
}
