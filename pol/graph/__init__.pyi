from .capture.check_capture import check_capture as check_capture
from .capture.initial_weights import capture_initialization as capture_initialization
from .capture.optimizers.rule import defines as defines
from .capture.shapes import capture_shapes as capture_shapes
