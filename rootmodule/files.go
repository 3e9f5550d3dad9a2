package rootmodule

// UnitFile is the file that Holdfast writes next to the terragrunt.hcl of a unit: an agent
// that finds it has Terragrunt render the root module, and one that does not know what it
// means finds a required_version that no engine has.
const UnitFile = "holdfast_terragrunt.tf"

// SecretFile is the file of a root module that says, as JSON, where its secret
// variables are: map[string]SecretRef by variable. The engine does not read it.
const SecretFile = "holdfast_secrets.json"

// VariablesFile is the file of a root module that has, as JSON, the variables of
// the cluster's document. They win over all other files of variables.
const VariablesFile = "holdfast.auto.tfvars.json"

// Names of files in a root module whose state is to be elsewhere than its code says: the
// block that counts, which engines read last, and the one that counted before a migration,
// which they do not read.
const (
	StateOverrideFile       = "zz_holdfast_state_override.tf"
	FormerStateOverrideFile = StateOverrideFile + ".former"
)
