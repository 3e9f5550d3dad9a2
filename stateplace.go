package holdfast

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// StatePlace is where the state of a cluster is since its first apply, on record. Whatever
// says another place moves nothing: that is refused (ReasonStateWouldMove) until the state
// is migrated.
type StatePlace struct {
	Cluster  string `json:"cluster"`
	Location string `json:"location"`
	// Stored says how to reach it in the storage of a runner; nil: it is in Holdfast's own
	// backend, or where the code or the document of the cluster says.
	Stored *StoredState `json:"stored,omitempty"`
	Run    string       `json:"run"`              // since which it is there: an apply, the plan that adopted it, or a migration
	Former string       `json:"former,omitempty"` // where it was before the migration, and may still be
	At     time.Time    `json:"at"`
}

// StateStorage is where the states of a runner's environments are, each under its own
// key below Prefix. The credentials are the Job's own identity.
type StateStorage struct {
	Type           string `json:"type"`                     // kubernetes, s3, gcs or azurerm
	Namespace      string `json:"namespace,omitempty"`      // kubernetes
	Bucket         string `json:"bucket,omitempty"`         // s3, gcs
	Region         string `json:"region,omitempty"`         // s3
	ResourceGroup  string `json:"resourceGroup,omitempty"`  // azurerm
	StorageAccount string `json:"storageAccount,omitempty"` // azurerm
	Container      string `json:"container,omitempty"`      // azurerm
	Prefix         string `json:"prefix,omitempty"`         // s3, gcs, azurerm
}

// StoredState is a state in the storage of a runner.
type StoredState struct {
	StateStorage
	Key string `json:"key"` // s3, azurerm: of the object; gcs: the folder; kubernetes: the end of the Secret's name
	// InCluster: of type kubernetes, in the cluster that the Job is in.
	InCluster bool `json:"inCluster,omitempty"`
}

// SameStore reports whether two storages are one, whatever way leads there; nil is Holdfast's
// own backend.
func (s *StateStorage) SameStore(other *StateStorage) bool {
	if s == nil || other == nil {
		return s == other
	}
	a, b := *s, *other
	a.Region, a.ResourceGroup, b.Region, b.ResourceGroup = "", "", "", ""
	a.Prefix, b.Prefix = strings.Trim(a.Prefix, "/"), strings.Trim(b.Prefix, "/")
	return a == b
}

// Backend is the type of the engines' backend for it, and its arguments. Credentials are not
// among them: they are the identity of what runs the engine.
func (s StoredState) Backend() (kind string, arguments map[string]any) {
	arguments = map[string]any{}
	set := func(name, value string) {
		if value != "" {
			arguments[name] = value
		}
	}
	switch s.Type {
	case "s3":
		set("bucket", s.Bucket)
		set("region", s.Region)
		set("key", s.Key)
		arguments["use_lockfile"] = true
	case "gcs":
		set("bucket", s.Bucket)
		set("prefix", s.Key)
	case "azurerm":
		set("resource_group_name", s.ResourceGroup)
		set("storage_account_name", s.StorageAccount)
		set("container_name", s.Container)
		set("key", s.Key)
	case "kubernetes":
		set("namespace", s.Namespace)
		set("secret_suffix", s.Key)
		if s.InCluster {
			arguments["in_cluster_config"] = true
		}
	}
	return s.Type, arguments
}

// suffixMost is how much of a cluster's name is in the name of a Secret.
const suffixMost = 30

// KeyOf is the key of the state of a cluster that is first applied in an environment: below
// the prefix, by project, environment and name. It stays what it was, whatever becomes of
// these names. N tells it apart from that of a cluster which had the name before, from 2 on.
func (s StateStorage) KeyOf(env EnvironmentKey, cluster string, n int) string {
	name := cluster
	if n > 1 {
		name += "~" + strconv.Itoa(n) // no cluster has such a name
	}
	path := cmp.Or(env.Project, "-") + "/" + cmp.Or(env.Name, "-") + "/" + name
	if prefix := strings.Trim(s.Prefix, "/"); prefix != "" {
		path = prefix + "/" + path
	}
	switch s.Type {
	case "s3", "azurerm":
		return path + ".tfstate"
	case "kubernetes": // a label has at most 63 characters, and may not end with a dash and a number
		hash := strings.TrimPrefix(string(DigestOf([]byte(path))), "sha256:")[:20]
		return strings.Trim(cluster[:min(len(cluster), suffixMost)], "-") + "-h" + hash
	default:
		return path
	}
}

// StateMove is what a run moves of a cluster's state.
type StateMove struct {
	From string `json:"from"` // locations
	To   string `json:"to"`
	// Stored says how To is reached, as in a StatePlace.
	Stored *StoredState `json:"stored,omitempty"`
	// Copied: somebody has copied it already. The run only proves that.
	Copied bool `json:"copied,omitempty"`
}

// StateMigration asks for the migration of a cluster's state to where it is to be, and says
// its outcome.
type StateMigration struct {
	Cluster string
	Actor   string
	DryRun  bool // only say what would be
	Copied  bool // somebody has copied the state already

	From, To string // locations; said by whoever is asked
	Run      string // that migrates; empty: it is a dry run
}

// In reports whether a state is in a storage; nil is Holdfast's own backend.
func (s *StoredState) In(storage *StateStorage) bool {
	if s == nil {
		return storage == nil
	}
	return s.SameStore(storage)
}
