"""Networks, one file each; what stands here is in the registry."""
