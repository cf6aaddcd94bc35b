"""Tests of the engine; a package, so that they share their bench."""
