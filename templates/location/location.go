package location

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/unseen"
)

// Backend is a configured backend, as far as it is known before an engine runs.
type Backend struct {
	Kind   string
	Config map[string]any    // the arguments with constant values
	Unread map[string]string // the expressions of those whose value is not known
	// Home is what the state is known by where the arguments do not say: the folder of
	// the code, or the name of the cluster.
	Home string
	// Scope is what the environment of the engine depends on.
	Scope string
	// Varied are the variables of that environment which may have another value in
	// another scope.
	Varied []string
}

// identity is which arguments of a backend say which state it is. Other arguments say
// how to get there.
type identity struct {
	required []string          // unknown if one of them is missing
	optional []string          // tell states apart where they are given
	defaults map[string]string // a written default is the same as none
}

// identityOf follows the documentation of the backends of Terraform 1.11 and OpenTofu
// 1.12 (language/backend/NAME, language/settings/backends/NAME). Runs use the workspace
// "default", which is where s3's workspace_key_prefix and local's workspace_dir have no
// effect. Names of buckets in S3, GCS and OSS and of Azure's storage accounts are those
// of one bucket and account worldwide, whatever the region. Nothing in inmem lasts.
func identityOf(kind string) identity {
	switch kind {
	case "s3":
		return identity{required: []string{"bucket", "key"}, optional: []string{"endpoint"}}
	case "gcs":
		return identity{required: []string{"bucket", "prefix"}, defaults: map[string]string{"prefix": ""}}
	case "azurerm":
		return identity{
			required: []string{"storage_account_name", "container_name", "key"}, optional: []string{"environment"},
			defaults: map[string]string{"environment": "public"},
		}
	case "oss":
		return identity{
			required: []string{"bucket", "key"}, optional: []string{"prefix"},
			defaults: map[string]string{"key": "terraform.tfstate", "prefix": "env:"},
		}
	case "cos":
		return identity{
			required: []string{"bucket", "key"}, optional: []string{"prefix", "region", "domain"},
			defaults: map[string]string{"key": "terraform.tfstate", "prefix": ""},
		}
	case "kubernetes":
		return identity{
			required: []string{"secret_suffix"},
			optional: []string{
				"namespace", "host", "config_path", "config_paths", "config_context", "config_context_cluster", "in_cluster_config",
			},
			defaults: map[string]string{"namespace": "default"},
		}
	case "http":
		return identity{required: []string{"address"}}
	case "pg":
		return identity{
			required: []string{"conn_str", "schema_name"}, optional: []string{"table_name"},
			defaults: map[string]string{"schema_name": "terraform_remote_state", "table_name": "states"},
		}
	case "consul":
		return identity{required: []string{"path"}, optional: []string{"address", "datacenter"}}
	case "local":
		return identity{required: []string{"path"}}
	case "cloud", "remote":
		return identity{
			required: []string{"organization", "workspaces.name"}, optional: []string{"hostname", "workspaces.prefix", "workspaces.tags", "workspaces.project"},
			defaults: map[string]string{"hostname": "app.terraform.io"},
		}
	}
	return identity{}
}

// Of names a state. Where an argument is missing that says which state it is, or its
// value is not known, the name has what is known, and the home.
func Of(b Backend) string {
	if b.Kind == "s3" {
		b = oneEndpoint(b)
	}
	id := identityOf(b.Kind)
	known := len(id.required) > 0
	var parts []string
	for _, name := range slices.Concat(id.required, id.optional) {
		required := slices.Contains(id.required, name)
		text, given := textOf(b.Config[name])
		expression, unread := b.Unread[name]
		fallback, hasDefault := id.defaults[name]
		switch {
		case given:
			text = b.readable(name, text)
		case unread:
			known = false
			parts = append(parts, name+"="+hidden(name, expression))
			continue
		case name == "conn_str":
			text = b.readable(name, "")
		case required && hasDefault:
			text = fallback
		default:
			known = known && !required
			continue
		}
		if required || !hasDefault || text != fallback {
			parts = append(parts, name+"="+text)
		}
	}
	switch {
	case known:
	case b.Kind == "inmem":
		parts = []string{b.Home}
	default:
		parts = append([]string{b.Home}, parts...)
	}
	name := b.Kind + ":" + printable(strings.Join(parts, ","))
	if b.Kind != "inmem" && !Ambient(name) && b.leftOpen() {
		name += ofEnvironment
	}
	return name
}

// printable is a name with what nobody sees as escapes: two names that differ in it do
// not look the same.
func printable(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsPrint(r) && !unseen.Is(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// textOf is a value as the engines convert it to text.
func textOf(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	case map[string]any:
		return "", false
	default:
		return fmt.Sprint(v), true
	}
}

// readable is the value of an argument without what does not say which state it is, and
// without credentials.
func (b Backend) readable(name, text string) string {
	switch name {
	case "address":
		address := address(text)
		if u, err := url.Parse(text); err == nil && u.RawQuery != "" { // which may have a token
			address += ",query=" + digest(u.RawQuery)
		}
		return address
	case "endpoint":
		return strings.TrimSuffix(address(text), "/")
	case "host", "hostname":
		if strings.Contains(text, "@") {
			return address(text)
		}
	case "conn_str":
		return database(text, b.Scope)
	case "prefix":
		if b.Kind == "gcs" { // which adds the slash at its end
			return strings.Trim(text, "/")
		}
	}
	return text
}

// hidden is an expression whose value is not known. Those of addresses may have
// credentials in them.
func hidden(name, expression string) string {
	if name == "address" || name == "endpoint" || name == "conn_str" || strings.Contains(expression, "@") {
		return "expression " + digest(expression)
	}
	return strings.Join(strings.Fields(expression), " ")
}

// oneEndpoint has the address of an S3 store that is not AWS's below one name: it can be
// written in two ways. Buckets of two stores may have the same name. One that only the
// environment names is not known here: see leftOpen.
func oneEndpoint(b Backend) Backend {
	config, unread := map[string]any{}, map[string]string{}
	for _, name := range []string{"bucket", "key", "region"} { // the last says how to get there
		config[name] = b.Config[name]
		if expression, ok := b.Unread[name]; ok {
			unread[name] = expression
		}
	}
	nested, _ := b.Config["endpoints"].(map[string]any)
	for _, value := range []any{nested["s3"], b.Config["endpoints.s3"], b.Config["endpoint"]} {
		if text, ok := value.(string); ok && text != "" {
			config["endpoint"] = text
			break
		}
	}
	for _, name := range []string{"endpoints.s3", "endpoints", "endpoint"} {
		if expression, ok := b.Unread[name]; ok && config["endpoint"] == nil {
			unread["endpoint"] = expression
			break
		}
	}
	b.Config, b.Unread = config, unread
	return b
}

// address is that of a server without credentials and query.
func address(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "unreadable " + digest(text)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// digest stands for a text that may have credentials in it.
func digest(text string) string {
	return strings.TrimPrefix(string(holdfast.DigestOf([]byte("location\x00"+text))), "sha256:")[:16]
}
