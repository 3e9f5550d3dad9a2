package modules

// Limits on the code that is read. They are far above what is sensible and far below
// what hurts.
const (
	maxModuleFile  = 10 << 20 // bytes of a file of a module: trees read no larger ones
	maxBundleFiles = 20_000
	maxLinks       = 16 // symbolic links that lead to one another
	maxFollowed    = 5_000
	maxModules     = 500 // local modules that one root module reaches
)
