from . import digits as digits
