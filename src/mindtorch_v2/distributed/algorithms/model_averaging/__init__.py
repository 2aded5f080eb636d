"""Averaging of models."""
