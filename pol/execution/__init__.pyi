from .cpu import CpuExecutor as CpuExecutor
from .reference import ReferenceExecutor as ReferenceExecutor
from .reference import next_state as next_state
