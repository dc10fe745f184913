"""Documents as people read them: every value of the form that the encoder gives, and anything else as it stands."""

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from pol.commitments import canonical_json
from pol.training.state import components, readable


def test_values_are_shown_by_path() -> None:
    value = {
        "rate": 0.1, "steps": 3, "big": 1 << 70, "none": None, "text": "a", "raw": b"\x01", "pair": (1, 2.0),
        "a/b": {7: True}, "empty": [{}, []], "weights": torch.zeros(2), "infinite": float("inf"),
    }  # fmt: skip
    state = components.encode({"part": value})
    assert readable.flat(state.documents) == {
        "part/rate": "0.1", "part/steps": "3", "part/big": str(1 << 70), "part/none": "null",
        "part/text": '"a"', "part/raw": "0x01", "part/pair/0": "1", "part/pair/1": "2.0",
        "part/a%2Fb/7": "true", "part/empty/0": "{}", "part/empty/1": "[]",
        "part/weights": "<tensor part/weights>", "part/infinite": "inf",
    }  # fmt: skip
    kept = readable.without_tensors(readable.of_document("part", state.documents["part"]))
    assert isinstance(kept, dict)
    assert "weights" not in kept
    assert "rate" in kept


FORMS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["dict", "float", "int", "tuple", "set", "Tensor", "x"]), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(FORMS)
def test_anything_that_is_no_form_is_shown_as_it_stands(form: Any) -> None:
    tree = readable.of_document("name", canonical_json.encode({"value": form}))
    assert all(path.startswith("name") and isinstance(text, str) for path, text in readable.leaves(tree, "name"))
