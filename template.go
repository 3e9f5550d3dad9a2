package holdfast

// What an output of a template can mean to Holdfast.
const (
	OutputRoleEndpoint   = "endpoint"   // URL of the cluster's API server
	OutputRoleKubeconfig = "kubeconfig" // a kubeconfig; always sensitive
	OutputRoleNodeCount  = "nodeCount"  // how many nodes there are
)

// TemplateDetail is what a version of a template says to those who make clusters from it.
type TemplateDetail struct {
	Name, Version string
	Description   string
	Schema        map[string]any // JSON Schema of the variables
	Required      []string       // variables that the schema requires
	Rules         []TemplateRule
	Providers     []TemplateProvider // by name
}

// TemplateRule is a rule that variables keep.
type TemplateRule struct {
	Rule    string // CEL
	Message string
	Path    string // the variable that it is reported at; may be empty
}

// TemplateProvider is what a template has for one provider.
type TemplateProvider struct {
	Name          string
	Regions       []string       // empty: any
	InstanceTypes []string       // globs; empty: any
	Defaults      map[string]any // of variables, in place of those of the schema
}
