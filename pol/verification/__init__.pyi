from .beacon.drand import QUICKNET as QUICKNET
from .beacon.drand import Round as Round
from .beacon.drand import verify_round as verify_round
from .engines.command_engine import CommandEngine as CommandEngine
from .engines.job_command import JobCommand as JobCommand
from .engines.redundancy import Redundancy as Redundancy
from .engines.store_engine import StoreEngine as StoreEngine
