# Generated from schema/torch_proxy.yaml; do not edit.
"""What the torch proxy serves."""
