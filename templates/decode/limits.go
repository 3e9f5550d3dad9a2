package decode

// Limits on what people write. They are far above what is sensible and far
// below what hurts.
const (
	maxFileBytes = 1 << 20 // of a cluster file or a template.yaml
	maxNodes     = 100_000 // of a YAML document once its aliases are replaced
	maxDepth     = 64      // of nested YAML
	maxDocuments = 1_000   // in a YAML file
	MaxFaults    = 100     // that are reported about one document
)

// What documents of ours begin with.
const (
	apiGroup       = "holdfast.dev"
	APIVersion     = apiGroup + "/v1"
	KindCluster    = "Cluster"
	KindTemplate   = "Template"
	KindRunner     = "Runner"
	KindRunnerRule = "RunnerRule"
)
