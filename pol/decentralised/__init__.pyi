from .diloco import DiLoCo as DiLoCo
from .diloco import diloco_plan as diloco_plan
from .diloco import diloco_round as diloco_round
from .local_processes import local_key as local_key
from .local_processes import run_workers as run_workers
from .round_worker import RoundWorker as RoundWorker
