from .market_place import MarketPlace as MarketPlace
from .submission import Submission as Submission
from .submission import submit as submit
