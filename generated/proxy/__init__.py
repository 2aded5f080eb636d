# Generated from schema/torch_proxy.yaml; do not edit.
"""Stub modules of the torch proxy; the proxy loads them under their names in torch."""
