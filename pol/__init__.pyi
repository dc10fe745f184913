from .claims.sample_size import sample as sample
from .claims.segment_draw import draw as draw
from .errors import EvidenceError as EvidenceError
from .errors import OperationalError as OperationalError
from .errors import ProtocolError as ProtocolError
from .errors import UnsupportedError as UnsupportedError
from .graph.capture.assemble import capture as capture
from .graph.capture.loop import Loop as Loop
from .training.exact.exact_loop import exact as exact
from .training.recorder.recorder import Recorder as Recorder
from .training.state.values import Values as Values
from .training.storage.store import Store as Store
from .training.task.published_task import load as load
from .training.task.published_task import publish as publish
from .training.task.task_randomness import TaskRandomness as TaskRandomness
from .verification.examination.verify_training import Sampling as Sampling
from .verification.examination.verify_training import verify as verify
from .verification.profile.profiling import measure_profile as measure_profile
from .verification.replay.task_replay import replay as replay

__version__: str
