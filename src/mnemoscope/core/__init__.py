"""Ground floor: errors, registries, files, numbers, references, plugins, which every room shares."""
