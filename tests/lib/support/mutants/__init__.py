"""Deliberately broken plugins, and the check of the kit that must catch each (DX-2).

Every mutant is a small change of a correct object, which itself passes its whole suite.
"""
