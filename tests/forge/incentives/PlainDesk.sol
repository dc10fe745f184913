// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk} from "../../../contracts/incentives/Desk.sol";
import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";

/// @notice A desk that does what anybody tells it: what such a desk can't do, no desk can.
contract PlainDesk is Desk {
    address public neighbour;

    constructor(IStakeVault vault_) Desk(vault_) {}

    function wire(address neighbour_) external wiring {
        neighbour = neighbour_;
    }

    function greet() external only(neighbour) {}

    function meet() external onlyDesk {}

    function who() external view returns (address) {
        return _party();
    }

    function tell(PlainDesk other) external {
        other.greet();
    }

    function visit(PlainDesk other) external {
        other.meet();
    }

    function lock(bytes32 key, address account, uint256 amount) external {
        vault.lock(key, account, amount);
    }

    function unlock(bytes32 key, address account, uint256 amount) external {
        vault.unlock(key, account, amount);
    }

    function startExit(bytes32 key, address account, uint256 amount) external {
        vault.startExit(key, account, amount);
    }

    function forfeit(bytes32 key, address account, uint256 amount) external {
        vault.forfeit(key, account, amount);
    }

    function pay(bytes32 key, address account, uint256 amount) external {
        vault.pay(key, account, amount);
    }

    function move(bytes32 key, address toDesk, bytes32 toKey, uint256 amount) external {
        vault.move(key, toDesk, toKey, amount);
    }
}
