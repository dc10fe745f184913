from .beacon.drand import QUICKNET as QUICKNET
from .beacon.drand import Round as Round
from .beacon.drand import verify_round as verify_round
