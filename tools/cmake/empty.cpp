// The precompiled header's own translation unit, and the source of libraries that have no file of their own yet.
