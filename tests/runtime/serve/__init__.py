"""Tests of the transport; a package, so that they share their fakes."""
