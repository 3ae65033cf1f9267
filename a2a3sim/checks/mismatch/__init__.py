"""Why a result differs from its golden."""
