package runner

// StateKind is the kind of the backend that an engine goes by for the root module
// in dir, and whether it has no arguments.
func StateKind(dir, engine string) (kind string, bare bool) {
	m := readModule(dir, dir, engine)
	return m.backend, m.bareBackend
}
