// Package templates turns what people write into what engines execute: it reads
// cluster and template documents, says all that is wrong with them at file, line
// and column, and makes the root module of a cluster, from a template or from a
// folder of the user's own.
//
// Nothing here reaches out: files come from a holdfast.Tree, versions of
// templates from a Versions. The same inputs give the same bytes, whatever the
// machine, the time or the order of maps.
package templates

// Limits on what people write. They are far above what is sensible and far
// below what hurts.
const (
	maxFileBytes     = 1 << 20  // of a cluster file or a template.yaml
	maxNodes         = 100_000  // of a YAML document once its aliases are replaced
	maxDepth         = 64       // of nested YAML
	maxDocuments     = 1_000    // in a YAML file
	maxFaults        = 100      // that are told about one document
	maxSchemaSteps   = 100_000  // of a variable schema once its references are followed
	maxPattern       = 1_000    // bytes of a regular expression in a schema
	maxModuleFile    = 10 << 20 // bytes of a file of a module: trees read no larger ones
	maxBundleFiles   = 20_000
	maxBundleBytes   = 256 << 20 // before compression
	maxLinks         = 16        // symbolic links that lead to one another
	maxModules       = 500       // local modules that one root module reaches
	maxMessage       = 500       // bytes of what a rule says
	maxProviders     = 50
	maxVariants      = 64 // sets of modules that are on, of a provider, that are remembered
	maxInstanceTypes = 5_000
)

const (
	apiVersion   = "holdfast.dev/v1"
	kindCluster  = "Cluster"
	kindTemplate = "Template"
)
