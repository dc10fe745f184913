from .game.griefing import burn_ratio as burn_ratio
from .game.needs import Needs as Needs
from .game.parameter_design import design as design
