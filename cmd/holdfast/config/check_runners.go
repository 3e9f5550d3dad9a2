package config

import (
	"fmt"
	"net"
	"net/url"

	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/templates/decode"
)

// checkSecrets checks the server's own secrets.
func (d contradictions) checkSecrets(secrets Secrets) {
	for _, name := range secrets.Names() {
		at := "secrets." + name
		if !decode.ValidName(name) {
			d.at(at, fmt.Sprintf("%q cannot be the name of a secret", name), decode.NameHint)
		}
		d.secret(at, secrets[name])
		if secrets[name].IsZero() {
			d.at(at, "names neither a file nor an environment variable", "add file: PATH or env: NAME")
		}
	}
}

// checkAllow checks what a repository may define.
func (d contradictions) checkAllow(path string, allow []Allow) {
	for j, entry := range allow {
		at := fmt.Sprintf("%s.allow[%d]", path, j)
		for n, kind := range entry.Kinds {
			d.oneOf(fmt.Sprintf("%s.kinds[%d]", at, n), kind, decode.KindCluster, decode.KindRunner, decode.KindRunnerRule)
		}
		if len(entry.Kinds) == 0 {
			d.at(at+".kinds", "is empty", "leave it out for [Cluster]")
		}
		d.globs(at+".paths", entry.Paths)
		d.globs(at+".projects", entry.Projects)
		d.globs(at+".environments", entry.Environments)
		d.globs(at+".states", entry.States)
		d.globs(at+".runners", entry.Runners)
		d.globs(at+".secrets", entry.Secrets)
	}
}

// checkJobs checks where clouds are: credentials are not sent there in the clear.
func (d contradictions) checkJobs(j Jobs) {
	for _, api := range []struct{ key, address string }{
		{"sts", j.Google.STS}, {"iamCredentials", j.Google.IAMCredentials}, {"container", j.Google.Container},
	} {
		if api.address != "" && !secretive(api.address) {
			d.at("jobs.google."+api.key, fmt.Sprintf("%q is not an https URL without query", api.address), "such as https://container-acme.p.googleapis.com")
		}
	}
}

// secretive reports whether what is sent to an address stays secret: by https, or on this
// machine.
func secretive(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery+u.Fragment == "" &&
		(u.Scheme == "https" || u.Scheme == "http" && loopback(net.JoinHostPort(u.Hostname(), "1")))
}

// jobsReach checks how Jobs reach the server: their tickets are not sent in the clear.
func (d contradictions) jobsReach(a Agents) {
	switch {
	case !secretive(a.URL):
		d.at("server.agents.url", fmt.Sprintf("%q is not an https URL without query", a.URL), "such as https://agents.holdfast.example.com")
	case a.Address == "":
		d.at("server.agents.url", "is of no use without an address", "add server.agents.address")
	}
}

func (d contradictions) checkAgentTokens(a Agents) {
	if a.Address != "" && len(a.Tokens) == 0 && a.URL == "" {
		d.at("server.agents.address", "agents need a token", "add server.agents.tokens, or url for Jobs of runners and agents with keys")
	}
	if a.URL != "" {
		d.jobsReach(a)
	}
	seen := make(map[string]bool)
	for i, token := range a.Tokens {
		path := fmt.Sprintf("server.agents.tokens[%d]", i)
		d.required(path+".name", token.Name)
		d.unique(path+".name", token.Name, seen)
		if err := protocol.CheckAgentID(token.Name); err != nil && token.Name != "" {
			d.at(path+".name", fmt.Sprintf("%q %v", token.Name, err), "the ids of its agents begin with it, such as eu or eu/plan")
		}
		d.secret(path+".token", token.Token)
		if token.Token.IsZero() {
			d.at(path, "has no token", "add token: {file: …} or {env: …}")
		}
		if len(token.Kinds) == 0 {
			d.at(path, "is bound to no kind of run", "add kinds, such as [plan, drift] or [apply, destroy]")
		}
		for j, kind := range token.Kinds {
			d.oneOf(fmt.Sprintf("%s.kinds[%d]", path, j), kind, "plan", "drift", "apply", "destroy")
		}
		for j, project := range token.Projects {
			d.required(fmt.Sprintf("%s.projects[%d]", path, j), project)
		}
		if !decode.ValidName(token.Runner) {
			d.at(path+".runner", fmt.Sprintf("%q cannot be the name of a runner", token.Runner), decode.NameHint)
		}
	}
}
