"""The project's own rules: style, types, layers, contracts, artefacts, documentation that runs."""

import json
import re
import shutil
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from contract_run import FORGE, contract_results
from ended_process import ran

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def run(*command: str | Path, cwd: Path = ROOT, code: int = 0) -> str:
    return ran(list(command), code=code, cwd=cwd).stdout


def test_every_vector_file_is_described() -> None:
    """fixtures/README.md names what is there, and nothing else."""
    told = re.findall(
        r"^\| `vectors/(\w+\.jsonl?)` \| .+ \| .+ \|$", (ROOT / "fixtures" / "README.md").read_text(), re.M
    )
    assert sorted(told) == sorted(path.name for path in (ROOT / "fixtures" / "vectors").iterdir())


def test_style() -> None:
    run(BIN / "ruff", "check")
    run(BIN / "ruff", "format", "--check")


@pytest.mark.long
def test_types() -> None:
    run(BIN / "mypy")


# To an editable installation `pol` is the whole checkout, builds included.
SOURCES_ONLY = f"""
import sys
sys.meta_path = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable")]
sys.path[:0] = {[str(ROOT), str(ROOT / "tests")]}
"""
LAYERS = f"{SOURCES_ONLY}from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
IMPORTS = f"""{SOURCES_ONLY}import grimp, json
graph = grimp.build_graph("pol", "lab", cache_dir=None)
print(json.dumps({{module: sorted(graph.find_modules_directly_imported_by(module)) for module in graph.modules}}))
"""


def test_layers() -> None:
    run(sys.executable, "-c", LAYERS)


def test_no_circle_of_files() -> None:
    """Every module can be read after those that it imports; an import inside of a function counts as any other."""
    imports = json.loads(run(sys.executable, "-c", IMPORTS))
    assert len(imports) > 300
    assert {module.partition(".")[0] for module in imports} == {"pol", "lab"}
    assert "pol.pol" not in imports
    order = list(TopologicalSorter(imports).static_order())  # CycleError names the modules of a circle
    assert len(order) == len(imports)


def forge_test(*arguments: str, profile: str = "default") -> int:
    """Number of tests of a profile of foundry.toml that passed; all did."""
    (ROOT / "build").mkdir(exist_ok=True)
    # The lock of .ci/artifacts.py: what one process compiles, another one finds.
    said = run("flock", "build/forge.lock", "env", f"FOUNDRY_PROFILE={profile}", FORGE, "test", *arguments)
    passed, failed = re.findall(r"(\d+) tests passed, (\d+) failed", said)[-1]
    assert int(failed) == 0
    return int(passed)


@pytest.mark.timeout(3600)  # it waits for the compiler, which is not native, beside all other work
def test_contracts() -> None:
    """Unit, fuzz and invariant tests; their number is not zero."""
    said = contract_results()
    suites = json.loads(said[said.index("{") :])
    states = [test["status"] for suite in suites.values() for test in suite["test_results"].values()]
    assert set(states) == {"Success"}
    assert len(states) > 200


def test_no_expectation_is_about_a_cheatcode() -> None:
    """With dynamic_test_linking forge puts a cheatcode in the place of `new`: what is expected of it can't fail."""
    expected = re.compile(r"vm\.expect\w+\([^;]*;\s*(?:\w[\w ]* = )?new \w+\(")
    for path in sorted((ROOT / "tests" / "forge").rglob("*.sol")):
        assert not expected.findall(path.read_text()), f"{path}: make the call that creates an external one"


def test_test_modules_have_names_of_their_own() -> None:
    """pytest imports them by name alone: of two that share one, a run of the whole suite refuses the second."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


OWN_JSON = {
    "pol/commitments/canonical_json.py": "the bounded reader itself",
    "pol/chain/contract_abi.py": "files of the package",
    "pol/chain/rpc/rpc_cache.py": "the requests that this process has made",
    "pol/roles/rounds/kept_rounds.py": "what a party wrote into its own folder",
    "pol/verification/profile/torch_reruns.py": "lines of a process that pol has started",
    "pol/verification/profile/torch_worker.py": "the job that pol gave its process",
    "pol/verification/runs/rehearsed_run.py": "what the recorder wrote beside the user's own program",
    "pol/zk/native_process.py": "the answer of a process that pol has started",
    "pol/zk/ezkl/worker.py": "the request of the process that started it, and what EZKL wrote for it",
    "pol/zk/ezkl/ezkl_prover.py": "what EZKL wrote into a folder of this process",
    "pol/zk/ezkl/keys.py": "the compiler's output",
}


def test_json_of_strangers_is_read_in_one_place() -> None:
    """`canonical_json.parse` bounds the depth: the parser recurses in C, and brackets alone would end the process."""
    reads = re.compile(r"(?<!\w)json\.loads?\b|from json import|JSONDecoder|\.json\(\)")
    found = {str(path.relative_to(ROOT)) for path in ROOT.glob("pol/**/*.py") if reads.search(path.read_text())}
    assert found == set(OWN_JSON)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_long_runs_of_invariants() -> None:
    assert forge_test("--match-path", "tests/forge/dispute/Winner.t.sol", profile="long") >= 6


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_a_hundred_thousand_calls_break_no_rule_of_money() -> None:
    """Fewer, or one that reverts, and the command fails."""
    assert ", 0 reverted" in run(".ci/audit", "invariants").splitlines()[-1]


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_all_roots() -> None:
    assert forge_test("--match-path", "tests/forge/exhaustive/*", profile="long") == 6


def test_contract_artefacts_are_those_of_the_sources() -> None:
    run(sys.executable, ".ci/artifacts.py", "--check")


@pytest.mark.timeout(3600)
def test_no_call_became_dearer(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(contract_results())
    run(sys.executable, ".ci/gas.py", tmp_path / "results.json")


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", ["slither", "prove", "coverage"])
def test_audit(part: str) -> None:
    """What docs/audit.md says is clean, proved and covered."""
    run(".ci/audit", part)


def test_no_module_is_too_long() -> None:
    files = [*ROOT.glob("pol/**/*.py"), *ROOT.glob("contracts/**/*.sol"), *ROOT.glob("pol/**/*.cpp")]
    assert len(files) > 100
    assert [f for f in files if len(f.read_text().splitlines()) > 800] == []


def test_a_bot_operator_needs_no_torch() -> None:
    """Importing what a bot runs loads neither torch nor an embedded chain."""
    modules = (
        "pol.chain.deployments.deployment, pol.cli.dispute.replay, pol.cli.market.run, pol.cli.market.stake, "
        "pol.cli.market.explain, pol.cli.verification.verify, pol.report.verification_page, "
        "pol.cli.verification.audit, pol.report.rounds_page, pol.rounds.auditing.drawn_audit, "
        "pol.roles.verifier.verifier_decisions, pol.roles.whistleblower.whistleblower_decisions, "
        "pol.training.record.proof_of_record, pol.verification.profile.profile_document, "
        "pol.cli.verification.pull_worker, pol.verification.engines.cores, "
        "pol.verification.engines.command_engine, pol.verification.engines.store_engine, "
        "pol.verification.examination.proof_examination, "
        "pol.verification.examination.screening"
    )
    check = f"import sys, {modules}; sys.exit(any(m in sys.modules for m in ('torch', 'eth_tester')))"
    run(sys.executable, "-c", check)


def test_links_in_documents_lead_somewhere() -> None:
    broken = []
    for document in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            if not (document.parent / target).exists():
                broken.append(f"{document.name}: {target}")
    assert broken == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_web3_7_and_no_torch(tmp_path: Path) -> None:
    """The chain's tests in an environment of a bot operator: the other supported web3, no torch."""
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    tools = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")
    older = ("web3==7.16.0", "eth-tester[py-evm]==0.13.0b1", f"{ROOT}[embedded,beacon]")
    run(python, "-m", "pip", "install", "--quiet", *tools, *older)
    # Elsewhere than in the checkout, or its folder pol/ would stand before the installed package.
    for part in ("tests", "fixtures", "docs", "contracts", ".ci"):
        shutil.copytree(ROOT / part, tmp_path / part)
    for name in ("pyproject.toml", "foundry.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    role = "pol.roles.verifier.verifier"
    check = f"import sys, web3, {role}; sys.exit('torch' in sys.modules or web3.__version__ != '7.16.0')"
    run(python, "-c", check, cwd=tmp_path)
    run(python, "-m", "pytest", "-q", "tests/chain", cwd=tmp_path)
