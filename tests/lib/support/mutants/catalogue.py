"""All mutants, and the correct objects that they are made from."""

from support.mutants.drivers import PlainConformance, driver_mutants
from support.mutants.interceptors import TokenConformance, interceptor_mutants
from support.mutants.sinks import PostingConformance, TableConformance, sink_mutants
from support.mutants.styles import (
    HttpxConformance,
    MinimalConformance,
    RetryingConformance,
    ThreadConformance,
)
from support.mutants.validators import HouseConformance, validator_mutants

MUTANTS = (*driver_mutants(), *interceptor_mutants(), *validator_mutants(), *sink_mutants())
CORRECT = (
    PlainConformance,
    HttpxConformance,
    ThreadConformance,
    MinimalConformance,
    TokenConformance,
    RetryingConformance,
    HouseConformance,
    TableConformance,
    PostingConformance,
)
