"""Write all pictures: `PYTHONPATH=tests python -m lab.figures.drawn`; a test compares them with docs/figures."""

from pathlib import Path

from lab.figures import measured_charts, protocol_pictures

FIGURES = Path(__file__).parents[3] / "docs" / "figures"
DRAWN = (
    protocol_pictures.data_flow,
    protocol_pictures.package_layers,
    protocol_pictures.commitments,
    protocol_pictures.dispute_walk,
    protocol_pictures.round_claims,
    measured_charts.training_speed,
    measured_charts.operation_speed,
    measured_charts.move_gas,
    measured_charts.call_gas,
    measured_charts.detection,
    measured_charts.honest_rejects,
)


def drawn() -> dict[str, str]:
    """All pictures by file name."""
    return {f"{draw.__name__}.svg": f"{draw()}\n" for draw in DRAWN}


if __name__ == "__main__":
    for name, picture in drawn().items():
        (FIGURES / name).write_text(picture)
