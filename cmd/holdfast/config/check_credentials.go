package config

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/folders"
)

func (d contradictions) checkCredentials(c *Config) {
	for i, cred := range c.Credentials {
		path := fmt.Sprintf("credentials[%d]", i)
		d.globs(path+".project", []string{cred.Project})
		d.globs(path+".environment", []string{cred.Environment})
		d.oneOf(path+".phase", cred.Phase, "", "plan", "apply")
		for name, secret := range cred.Secrets {
			at := path + ".secrets." + name
			d.variable(at, name)
			d.secret(at, secret)
			if secret.IsZero() {
				d.at(at, "names neither a file nor an environment variable", "")
			}
			if _, both := cred.Env[name]; both {
				d.at(at, "is in env too", "keep one")
			}
		}
		for name := range cred.Env {
			d.variable(path+".env."+name, name)
		}
		d.checkSecretSources(path, c, cred)
		d.checkGitHosts(path+".git", cred)
		d.checkKeyless(path, cred)
	}
}

// checkGitHosts checks what Git is to show to hosts.
func (d contradictions) checkGitHosts(path string, cred Credential) {
	for _, host := range slices.Sorted(maps.Keys(cred.Git)) {
		at := path + "." + host
		u, err := url.Parse(host)
		switch {
		case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "":
			d.at(at, fmt.Sprintf("%q is not the address of a Git host", host), "write scheme and host only, such as https://git.example.com")
		case cred.Git[host].Password.IsZero():
			d.at(at, "has no password", "name the file or the variable that has the password or token: password: {file: PATH}")
		case strings.ContainsAny(cred.Git[host].Username, "\r\n\x00"):
			d.at(at+".username", "has a line end in it", "")
		}
		d.secret(at+".password", cred.Git[host].Password)
	}
}

// storeName is as documents of clusters may write it.
var storeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// checkSecretSources checks where secret variables may come from.
func (d contradictions) checkSecretSources(path string, c *Config, cred Credential) {
	for i, dir := range cred.SecretDirs {
		at := fmt.Sprintf("%s.secretDirs[%d]", path, i)
		switch clean := filepath.Clean(dir); {
		case !filepath.IsAbs(dir):
			d.at(at, fmt.Sprintf("%q is not an absolute path", dir), "agents may be on other machines: such as /run/secrets/holdfast")
		case clean == "/" || folders.Within(kernelFolders, clean):
			d.at(at, "contains more than secrets for clusters", "such as /run/secrets/holdfast")
		case folders.Within([]string{clean}, c.data()):
			d.at(at, "contains the server's own data", "use a folder of its own")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cred.Stores)) {
		store, at := cred.Stores[name], path+".stores."+name
		if !storeName.MatchString(name) {
			d.at(at, fmt.Sprintf("%q is not a valid store name", name), "letters, digits, _, . and -")
		}
		switch node := d.where[at+".command"]; {
		case node != nil && node.Kind != yaml.SequenceNode: // was reported already
		case len(store.Command) == 0 || store.Command[0] == "":
			d.at(at, "has no command", "such as command: [vault, kv, get, -field=value, \"{key}\"]")
		case strings.Contains(store.Command[0], "/") && !filepath.IsAbs(store.Command[0]):
			d.at(at+".command[0]", "must be the name of a program or an absolute path", "")
		case strings.Contains(store.Command[0], "{key}"):
			d.at(at+".command[0]", "must not be chosen by a key", "")
		case !strings.Contains(strings.Join(store.Command, "\n"), "{key}"):
			d.at(at+".command", "has no \"{key}\": every secret would be the same", "put \"{key}\" where the key goes")
		case strings.ContainsRune(strings.Join(store.Command, ""), 0):
			d.at(at+".command", "has a NUL in it", "")
		}
	}
}

// managed are variables that Holdfast or the engine driver set themselves.
var managed = []string{
	"TF_HTTP_", "TF_INPUT", "TF_IN_AUTOMATION", "TF_LOG", "TF_WORKSPACE", "TF_REATTACH_PROVIDERS",
	"TF_APPEND_USER_AGENT", "TF_DISABLE_PLUGIN_TLS", "TF_SKIP_PROVIDER_VERIFY", "TF_VAR_", "TF_CLI_ARGS", "TF_DATA_DIR",
}

// ofHTTPBackends are those of the engine's http backend that are credentials: a
// user's own backend of that kind needs them. Where Holdfast's own backend is used
// the engine does not get them.
var ofHTTPBackends = holdfast.HTTPBackendCredentials()

func (d *decoder) variable(path, name string) {
	for _, prefix := range managed {
		if slices.Contains(ofHTTPBackends, name) {
			break
		}
		if variable, is := strings.CutPrefix(name, "TF_VAR_"); is && prefix == "TF_VAR_" {
			d.at(path, "is set by Holdfast and cannot be given",
				fmt.Sprintf("give it another name here, such as %s, and write %s: {secret: {env: %[1]s}} under spec.variables of the cluster", strings.ToUpper(variable), variable))
		} else if strings.HasPrefix(name, prefix) && prefix == "TF_HTTP_" {
			d.at(path, "is set by Holdfast and cannot be given",
				"addresses of an http backend belong in spec.state of the cluster; its credentials are "+strings.Join(ofHTTPBackends, ", "))
		} else if strings.HasPrefix(name, prefix) {
			d.at(path, "is set by Holdfast and cannot be given", "variables of a cluster belong in its YAML")
		}
	}
	if name == "" || strings.ContainsAny(name, "= \t\n\x00") {
		d.at(path, fmt.Sprintf("%q is not a valid name of an environment variable", name), "")
	}
}
