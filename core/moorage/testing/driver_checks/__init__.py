"""The checks of `DriverConformance`, by what a driver is asked."""
