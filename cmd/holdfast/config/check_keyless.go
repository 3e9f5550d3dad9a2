package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/issuer"
)

func (d contradictions) checkIssuer(c *Config) {
	i, given := c.Server.Issuer, false
	for n, cred := range c.Credentials {
		for _, k := range keyless {
			if !k.given(cred) {
				continue
			}
			given = true
			if i.URL == "" {
				d.at(fmt.Sprintf("credentials[%d].%s", n, k.kind), "needs tokens, and this server issues none", "set server.issuer.url")
			}
		}
	}
	const path = "server.issuer"
	if i.URL == "" {
		if i.Replaces != "" {
			d.at(path+".replaces", "is set, but server.issuer.url is not", "")
		}
		return
	}
	if err := issuer.CheckURL(i.URL); err != nil {
		d.at(path+".url", fmt.Sprintf("%q %v", i.URL, err), "such as https://holdfast.example.com")
	}
	switch {
	case i.Replaces == i.URL:
		d.at(path+".replaces", "is the same as url", "write the former url, or remove it")
	case i.Replaces != "" && issuer.CheckURL(i.Replaces) != nil:
		d.at(path+".replaces", fmt.Sprintf("%q cannot have been a url", i.Replaces), "")
	}
	if i.Lifetime < 10*time.Second || i.Lifetime > 24*time.Hour {
		d.at(path+".lifetime", "must be 10s to 24h", "")
	}
	if i.Announce < time.Hour {
		d.at(path+".announce", "must be at least 1h: others keep the keys for a while", "")
	}
	if i.Rotate != 0 && i.Rotate <= i.Announce {
		d.at(path+".rotate", "must be longer than announce", "or 0s: the same key forever")
	}
	if given && c.Server.Public.Address == "" {
		d.at("server.public.address", "is empty: nobody can fetch the keys that verify tokens", "")
	}
}

var (
	roleARN        = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]{1,576}$`)
	sessionName    = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)
	googleProvider = regexp.MustCompile(`^projects/[0-9]+/locations/global/workloadIdentityPools/[a-z0-9-]+/providers/[a-z0-9-]+$`)
	googleAccount  = regexp.MustCompile(`^[^\s/@?#]+@[a-z0-9.-]+$`)
	azureID        = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
	vaultWord      = regexp.MustCompile(`^/?[\w.-]+(/[\w.-]+)*/?$`)
)

// checkKeyless checks what an entry says of identities.
func (d contradictions) checkKeyless(path string, cred Credential) {
	match := func(key, value string, pattern *regexp.Regexp, want string) {
		if value == "" {
			d.at(path+"."+key, "is missing", want)
		} else if !pattern.MatchString(value) {
			d.at(path+"."+key, fmt.Sprintf("%q is not valid", value), want)
		}
	}
	optional := func(key, value string, pattern *regexp.Regexp, want string) {
		if value != "" {
			match(key, value, pattern, want)
		}
	}
	if a := cred.AWS; a != (AWS{}) {
		match("aws.roleARN", a.RoleARN, roleARN, "such as arn:aws:iam::123456789012:role/holdfast-plan")
		optional("aws.sessionName", a.SessionName, sessionName, "2 to 64 letters, digits and + = , . @ - _")
	}
	if g := cred.GCP; g != (GCP{}) {
		match("gcp.workloadIdentityProvider", g.Provider, googleProvider,
			"projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER, with the project's number")
		optional("gcp.serviceAccount", g.ServiceAccount, googleAccount, "an e-mail address such as plan@my-project.iam.gserviceaccount.com")
	}
	if a := cred.Azure; a != (Azure{}) {
		match("azure.tenantID", a.TenantID, azureID, "a UUID: the directory (tenant) id")
		match("azure.clientID", a.ClientID, azureID, "a UUID: the application (client) id")
		optional("azure.subscriptionID", a.SubscriptionID, azureID, "a UUID")
	}
	if v := cred.Vault; v != (Vault{}) {
		if u, err := url.Parse(v.Address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery+u.Fragment != "" {
			d.at(path+".vault.address", fmt.Sprintf("%q is not the address of a Vault", v.Address), "such as https://vault.example.com:8200")
		}
		match("vault.role", v.Role, vaultWord, "the name of a role of the auth method")
		optional("vault.mount", v.Mount, vaultWord, "the path of the auth method, such as jwt")
		optional("vault.namespace", v.Namespace, vaultWord, "such as team/eu")
	}
	for key, audience := range map[string]string{
		"aws": cred.AWS.Audience, "gcp": cred.GCP.Audience, "azure": cred.Azure.Audience, "vault": cred.Vault.Audience,
	} {
		if strings.ContainsAny(audience, " \t\r\n\x00") || len(audience) > 255 {
			d.at(path+"."+key+".audience", "must be one word of at most 255 bytes", "")
		}
	}
}

// checkRivals finds variables that contradict an identity that the same run gets. Entries may
// match the same runs if their globs are equal, or one of them is *.
func (d contradictions) checkRivals(c *Config) {
	for i, with := range c.Credentials {
		for _, k := range keyless {
			if !k.given(with) {
				continue
			}
			for j, other := range c.Credentials {
				if i != j && !meet(with, other) {
					continue
				}
				for _, name := range KeylessVariables(k.kind) {
					d.checkRival(fmt.Sprintf("credentials[%d]", j), fmt.Sprintf("credentials[%d].%s", i, k.kind), name, other, slices.Contains(k.sets, name))
				}
			}
			if _, set := with.Env["AWS_REGION"]; set && k.kind == "aws" && with.AWS.Region != "" {
				d.at(fmt.Sprintf("credentials[%d].env.AWS_REGION", i), "is aws.region too", "keep one")
			}
		}
	}
}

func (d contradictions) checkRival(path, keyless, name string, other Credential, ours bool) {
	hint := "the engine would use it instead: keep one of them"
	if ours {
		hint = "Holdfast sets it: remove it"
	}
	if _, is := other.Env[name]; is {
		d.at(path+".env."+name, "contradicts "+keyless, hint)
	}
	if _, is := other.Secrets[name]; is {
		d.at(path+".secrets."+name, "contradicts "+keyless, hint)
	}
}

// meet reports whether two entries are surely for some of the same runs.
func meet(a, b Credential) bool {
	same := func(x, y string) bool {
		all := []string{"*", "**"}
		return x == y || slices.Contains(all, x) || slices.Contains(all, y)
	}
	return same(a.Project, b.Project) && same(a.Environment, b.Environment) && (a.Phase == "" || b.Phase == "" || a.Phase == b.Phase)
}
