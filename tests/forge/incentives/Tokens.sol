// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC2771Forwarder} from "@openzeppelin/contracts/metatx/ERC2771Forwarder.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Base} from "../Base.sol";

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

/// @notice Signs requests to a forwarder as EIP-712 says, without the forwarder's help.
abstract contract Relaying is Base {
    uint48 internal constant NEVER = type(uint48).max;

    function _domain(address verifier, string memory name) internal view returns (bytes32) {
        bytes32 form = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
        return keccak256(abi.encode(form, keccak256(bytes(name)), keccak256("1"), block.chainid, verifier));
    }

    function _signature(uint256 key, bytes32 domain, bytes32 content) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, keccak256(abi.encodePacked("\x19\x01", domain, content)));
        return abi.encodePacked(r, s, v);
    }

    /// @dev A request of the key's owner for a call with the forwarder's current nonce.
    function _request(ERC2771Forwarder forwarder, uint256 key, address to, uint256 value, bytes memory data)
        internal
        view
        returns (ERC2771Forwarder.ForwardRequestData memory request)
    {
        request.from = vm.addr(key);
        (request.to, request.value, request.gas, request.deadline, request.data) = (to, value, 1_000_000, NEVER, data);
        bytes32 content = keccak256(
            abi.encode(
                keccak256(
                    "ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,uint48 deadline,bytes data)"
                ),
                request.from,
                to,
                value,
                request.gas,
                forwarder.nonces(request.from),
                NEVER,
                keccak256(data)
            )
        );
        request.signature = _signature(key, _domain(address(forwarder), "pol forwarder"), content);
    }
}
