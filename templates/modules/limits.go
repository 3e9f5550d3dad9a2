package modules

// Limits on the code that is read. They are far above what is sensible and far below
// what hurts.
const (
	maxModuleFile  = 10 << 20 // bytes of a file of a module: trees read no larger ones
	maxBundleFiles = 20_000
	maxModuleCode  = 32 << 20 // bytes of the code in one folder; one content can have many names
	maxTreeCode    = 64 << 20 // bytes of the code that one root module reaches
	maxLinks       = 16       // symbolic links that lead to one another
	maxFollowed    = 5_000
	maxModules     = 500 // local modules that one root module reaches

	maxModuleTokens = 6_000_000 // of the code in one folder, all of which is held at once
)

// codeHint is for code that is beyond these limits.
const codeHint = "keep data in files that are not code"
