"""The paged KV cache: block pool, radix tree, tensors."""
