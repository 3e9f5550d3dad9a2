package templates

import (
	"maps"
	"net/url"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// identifying are the arguments of a backend that say which state it is, all of
// which must be known to tell; other arguments say how to get there.
func identifying(kind string) []string {
	switch kind {
	case "s3", "oss", "cos":
		return []string{"bucket", "key"}
	case "gcs":
		return []string{"bucket", "prefix"}
	case "azurerm":
		return []string{"storage_account_name", "container_name", "key"}
	case "kubernetes":
		return []string{"secret_suffix"}
	case "http":
		return []string{"address"}
	case "consul", "local":
		return []string{"path"}
	case "cloud", "remote":
		return []string{"organization", "workspaces.name"}
	}
	return nil
}

// optional are further arguments that tell states apart where they are given.
func optional(kind string) []string {
	switch kind {
	case "kubernetes":
		return []string{"namespace", "host", "config_path", "config_context"}
	case "consul":
		return []string{"address"}
	case "cloud", "remote":
		return []string{"hostname"}
	}
	return nil
}

// stateLocation names a state, for the lock on it and for what a repository is
// allowed: the same for the same state wherever its backend is written, and
// without credentials. It reports false if the arguments do not say.
func stateLocation(kind string, config map[string]any) (string, bool) {
	var pairs []string
	for i, names := range [][]string{identifying(kind), optional(kind)} {
		for _, name := range names {
			text, ok := config[name].(string)
			if !ok && i == 0 {
				return "", false
			} else if !ok {
				continue
			}
			if name == "address" {
				text = withoutCredentials(text)
			}
			pairs = append(pairs, name+"="+text)
		}
	}
	if endpoint := s3Endpoint(config); kind == "s3" && endpoint != "" {
		pairs = append(pairs, "endpoint="+endpoint) // buckets of two stores may have the same name
	}
	return kind + ":" + strings.Join(pairs, ","), len(pairs) > 0
}

// s3Endpoint is the address of an S3 store that is not AWS's, in either of the
// ways to write it; empty if the arguments name none. One that only the
// environment names is not known here.
func s3Endpoint(config map[string]any) string {
	endpoints, _ := config["endpoints"].(map[string]any)
	for _, value := range []any{endpoints["s3"], config["endpoints.s3"], config["endpoint"]} {
		if text, ok := value.(string); ok && text != "" {
			return strings.TrimSuffix(withoutCredentials(text), "/")
		}
	}
	return ""
}

func withoutCredentials(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "unreadable"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// backend is where a root module's state lives.
type backend struct {
	kind     string
	config   map[string]any // of the block that Holdfast writes
	location string
	own      bool // Holdfast's own
}

// backendOf is the backend of a cluster whose code names none.
func backendOf(c holdfast.Cluster) backend {
	if c.State == nil {
		return backend{kind: "http", location: "clusters/" + c.Name, own: true}
	}
	config := maps.Clone(c.State.Config)
	if config == nil {
		config = map[string]any{}
	}
	if own, fallback := document.OwnArgument(c.State.Type, c.Name); own != "" && config[own] == nil {
		config[own] = fallback
	}
	at, ok := stateLocation(c.State.Type, config)
	if !ok { // an argument that is not text; the engine will say so
		at = c.State.Type + ":" + c.Name
	}
	return backend{kind: c.State.Type, config: config, location: at}
}

// backendIn is that of a block in the code of dir. Arguments that come from
// elsewhere leave the folder to know the state by.
func backendIn(b *modules.Backend, dir string) backend {
	at, ok := stateLocation(b.Kind, b.Attributes)
	if !ok {
		at = b.Kind + ":" + dir
	}
	return backend{kind: b.Kind, location: at}
}
