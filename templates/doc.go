// Package templates owns the root modules of clusters: it reads templates, finds the
// version that a document names, says what of the document does not fit its template
// or its module, renders the root module, packs it with all that it needs, and says
// how two of them differ.
//
// The way of a cluster through it: Resolver.Resolve (resolve.go) finds and loads the
// template (remember.go, template.go and what it reads: variables, rules, outputs,
// configure, wiring, inputs), takes the variant of it with the modules that are on
// (variant.go), renders (render.go) and assembles a Root (assemble.go, bundle.go).
// Documents are read by package document, schemas, conditions and the code of modules
// by the packages of those names.
//
// The reconciler and the commands call it. Nothing here reaches out: files come from a
// holdfast.Tree, versions of templates from a Versions. The same inputs give the same
// bytes, whatever the machine, the time or the order of maps.
package templates

// Limits on what people write. They are far above what is sensible and far
// below what hurts.
const (
	maxBundleBytes   = 256 << 20 // before compression
	maxMessage       = 500       // bytes of what a rule says
	maxProviders     = 50
	maxVariants      = 64 // sets of modules that are on, of a provider, that are remembered
	maxInstanceTypes = 5_000
)
