"""What every room shares: errors, registries, references, plugins."""
