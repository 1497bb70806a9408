"""Helpers of the tests: real servers, databases and gateways."""
