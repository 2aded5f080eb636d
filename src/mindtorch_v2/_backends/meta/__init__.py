"""The meta device: shapes, dtypes and strides without data. Its rules validate every operator, on every device."""
