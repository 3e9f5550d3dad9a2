package config

import (
	"fmt"
	"time"
)

// Access says who may do what.
type Access struct {
	OIDC          OIDC          `yaml:"oidc" doc:"An identity provider (OpenID Connect) by which people log in. Register the redirect URI <server.api.url>/login/callback for its client."`
	Bindings      []Binding     `yaml:"bindings" doc:"Which people have which role in which projects. If several match, the strongest role is used."`
	Sessions      Sessions      `yaml:"sessions" doc:"How long logins in browsers last."`
	TokenLifetime time.Duration `yaml:"tokenLifetime" default:"2160h" doc:"Maximum lifetime of tokens that people create, or get with holdfast login."`
}

// OIDC is an identity provider.
type OIDC struct {
	Issuer       string   `yaml:"issuer" doc:"The issuer's URL, such as https://id.example.com; its /.well-known/openid-configuration is read at each login. Left out: people log in with a token of server.api.tokens."`
	Name         string   `yaml:"name" doc:"Shown on the login page. Left out: the issuer's host."`
	ClientID     string   `yaml:"clientID" doc:"The id of Holdfast's client at the provider."`
	ClientSecret Secret   `yaml:"clientSecret" doc:"The client's secret. Left out: a public client, which uses only PKCE."`
	Scopes       []string `yaml:"scopes" doc:"Scopes to request besides openid. Left out: profile, email and groups."`
	NameClaim    string   `yaml:"nameClaim" default:"preferred_username" doc:"The claim with the name for the audit trail, such as email. Permissions never depend on it."`
	GroupsClaim  string   `yaml:"groupsClaim" default:"groups" doc:"The claim with a person's groups. It is read from the ID token, otherwise from userinfo, at each login."`
}

// Binding gives a role to people.
type Binding struct {
	Role     string   `yaml:"role" doc:"viewer, operator, approver or admin: see [access](access.md)."`
	Projects []string `yaml:"projects" doc:"The projects in which they have the role. Left out: all."`
	Groups   []string `yaml:"groups" doc:"Groups, as the identity provider writes them."`
	People   []string `yaml:"people" doc:"Subjects of the identity provider (claim sub), because names and addresses can be reassigned."`
	Everyone bool     `yaml:"everyone" doc:"Everyone who can log in at the identity provider."`
}

// Sessions bound logins.
type Sessions struct {
	Idle     time.Duration `yaml:"idle" default:"8h" doc:"How long a session lasts without a request."`
	Absolute time.Duration `yaml:"absolute" default:"24h" doc:"How long a session lasts in total. Groups are read again at the next login."`
}

func (d contradictions) checkAccess(c *Config) {
	const path = "server.access"
	a := c.Server.Access
	if oidc := a.OIDC; oidc.Issuer == "" {
		if oidc.ClientID != "" || !oidc.ClientSecret.IsZero() {
			d.at(path+".oidc", "has no issuer", "add issuer: https://...")
		}
		if len(a.Bindings) > 0 {
			d.at(path+".bindings", "bind nobody: no identity provider is configured", "add server.access.oidc")
		}
	} else {
		d.url(path+".oidc.issuer", oidc.Issuer, "https", "http")
		d.required(path+".oidc.clientID", oidc.ClientID)
		d.secret(path+".oidc.clientSecret", oidc.ClientSecret)
		if c.Server.API.URL == "" {
			d.at("server.api.url", "is missing: the identity provider sends people back there", "")
		}
	}
	for i, binding := range a.Bindings {
		at := fmt.Sprintf("%s.bindings[%d]", path, i)
		d.oneOf(at+".role", binding.Role, "viewer", "operator", "approver", "admin")
		if len(binding.Groups)+len(binding.People) == 0 && !binding.Everyone {
			d.at(at, "binds nobody", "add groups, people or everyone: true")
		}
		for name, list := range map[string][]string{"projects": binding.Projects, "groups": binding.Groups, "people": binding.People} {
			for j, item := range list {
				d.required(fmt.Sprintf("%s.%s[%d]", at, name, j), item)
			}
		}
	}
	if a.TokenLifetime < time.Hour {
		d.at(path+".tokenLifetime", "must be at least 1h", "")
	}
	if a.Sessions.Idle < time.Minute || a.Sessions.Absolute < a.Sessions.Idle {
		d.at(path+".sessions", "must have an idle time of at least 1m, and an absolute one that is not shorter", "")
	}
}
