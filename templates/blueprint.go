package templates

// Blueprint is a template as data, for those who describe or compare templates.
// Nothing in it may be changed.
type Blueprint struct {
	Name        string
	Version     string // metadata.version; may be empty
	Description string
	Schema      map[string]any // JSON Schema of the variables, as it was written
	Required    []string       // variables that the schema requires, sorted
	Rules       []RuleBlueprint
	Providers   []ProviderBlueprint // by name
	Outputs     []OutputBlueprint   // by name
}

// RuleBlueprint is a rule that variables keep.
type RuleBlueprint struct {
	Rule    string // CEL
	Message string
	Path    string // the variable that it is reported at; may be empty
}

// ProviderBlueprint is what a template makes for one provider.
type ProviderBlueprint struct {
	Name          string
	Regions       []string // empty: any
	InstanceTypes []string // globs; empty: any
	Defaults      map[string]any
	Configure     []EngineProvider
	Modules       []ModuleBlueprint // in the order of their dependencies
}

// EngineProvider is a provider of the engine that the root module configures.
type EngineProvider struct {
	Name    string // local name, such as aws
	Source  string // such as hashicorp/aws
	Version string // constraint; may be empty
}

// ModuleBlueprint is a module that a template calls.
type ModuleBlueprint struct {
	Name      string
	Source    string // as it was written
	Version   string // of a registry module
	When      string // CEL; empty: always on
	DependsOn []string
	Needs     []string          // modules that it waits for, by reference or dependsOn; sorted
	Inputs    map[string]string // as they were written; what is not text, as JSON
}

// OutputBlueprint is an output of a template.
type OutputBlueprint struct {
	Name        string
	Value       string // as it was written
	Description string
	Sensitive   bool
	Means       string // holdfast.OutputRoleEndpoint and its like; may be empty
}
