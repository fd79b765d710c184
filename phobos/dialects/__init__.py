"""The dialects that Phobos adds to xDSL: tile, ctx, collective and ptx."""
