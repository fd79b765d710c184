"""Where the constants of phobos/transforms/lowering/functions come from."""
