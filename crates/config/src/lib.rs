//! TOML configuration and presets, turned into checked core types.
