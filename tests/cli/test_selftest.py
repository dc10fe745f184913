"""`pol selftest` says whether a device gives the defined bits."""

import json

from cli_runner import Said, pol


def test_document_of_the_processor() -> None:
    said = pol("selftest", "--short", "--json")
    assert said == Said(0)
    document = json.loads(said.out)
    assert (document["device"], document["form"], document["passed"], document["failed"]) == ("cpu", "short", True, [])
    assert document["checks"] > 60
    assert [figure["unit"] for figure in document["figures"]] == ["GB/s", "GB/s", "GFLOP/s", "GOP/s", "ms", "ms"]
    assert all(figure["value"] > 0 for figure in document["figures"])


def test_people() -> None:
    assert pol("selftest", "--short") == Said(0, match="checks give the defined bits.")


def test_no_such_device() -> None:
    assert pol("selftest", "--device", "tpu") == Said(2, match="there is no device 'tpu': name cpu, cuda")
