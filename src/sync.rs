//! The synchronisation primitives of `shared/`, in one place so that loom and shuttle can replace them.
