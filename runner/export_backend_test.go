package runner

// StateKind is the kind of the backend that an engine goes by for the root module
// in dir, and whether it has no arguments.
func StateKind(dir, engine string) (kind string, bare bool) {
	m := readModule(dir, dir, engine)
	return m.backend, m.bareBackend
}

// CodeOf is what is read of the root module in dir for an engine: the versions of
// engines that it asks for, and what init's result depends on.
func CodeOf(dir, engine string) (requires, needs []string) {
	m := readModule(dir, dir, engine)
	return m.requires, m.needs
}
