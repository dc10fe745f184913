// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";

/// @notice A token that does what it says.
contract Coin is ERC20Permit {
    constructor() ERC20("coin", "C") ERC20Permit("coin") {}

    function give(address account, uint256 amount) external {
        _mint(account, amount);
    }
}

/// @notice Takes a hundredth of every transfer: of what arrives, or on top from who pays.
contract FeeCoin is Coin {
    bool public arrivesWhole;
    bool public isOn = true;

    function set(bool isOn_, bool arrivesWhole_) external {
        (isOn, arrivesWhole) = (isOn_, arrivesWhole_);
    }

    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (isOn && from != address(0) && to != address(0)) {
            super._update(arrivesWhole ? from : to, address(0), amount / 100);
        }
    }
}

/// @notice Moves nothing, and says so, or not.
contract StuckCoin is Coin {
    bool public isStuck = true;
    bool public answer;

    function set(bool isStuck_, bool answer_) external {
        (isStuck, answer) = (isStuck_, answer_);
    }

    function transfer(address to, uint256 amount) public override returns (bool) {
        return isStuck ? answer : super.transfer(to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        return isStuck ? answer : super.transferFrom(from, to, amount);
    }
}

/// @notice Moves what it says, and says nothing.
contract SilentCoin is Coin {
    function transfer(address to, uint256 amount) public override returns (bool) {
        super.transfer(to, amount);
        assembly {
            return(0, 0)
        }
    }

    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        super.transferFrom(from, to, amount);
        assembly {
            return(0, 0)
        }
    }
}

/// @notice Who wants to know when its tokens move.
interface IHooked {
    function onMove() external;
}

/// @notice Calls who pays before, and who is paid after it moves, if they have asked for it (as ERC-777 does).
contract HookCoin is Coin {
    mapping(address account => bool) public hooked;

    function hook() external {
        hooked[msg.sender] = true;
    }

    function _update(address from, address to, uint256 amount) internal override {
        if (hooked[from]) IHooked(from).onMove();
        super._update(from, to, amount);
        if (hooked[to]) IHooked(to).onMove();
    }
}

/// @notice Takes from its holders.
contract ShrinkingCoin is Coin {
    function shrink(address holder, uint256 amount) external {
        _burn(holder, amount);
    }
}
