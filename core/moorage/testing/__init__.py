"""For plugin authors: a gateway as a subprocess, fakes, conformance suites (DX-2)."""
