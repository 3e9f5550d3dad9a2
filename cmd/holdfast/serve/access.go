package serve

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/login"
	"github.com/holdfast-dev/holdfast/server/session"
)

// logins are how people log in: with a token of the configuration, and by the identity provider
// if there is one.
func logins(s *services, tokens []server.Token) (server.Login, error) {
	c := s.cfg.Server.Access
	desk, err := login.New(login.Options{
		Records: login.Records{People: s.store, Keys: s.store, Requests: s.store}, Provider: identityProvider(s.cfg.Server),
		Rules: login.Rules{Bindings: roleBindings(c), Tokens: tokens, MaxLifetime: c.TokenLifetime},
		Audit: s.store, Logger: s.logger, Now: s.clock.Now,
	})
	if err != nil {
		return server.Login{}, err
	}
	return server.Login{
		Sessions: s.store, Lists: s.store, People: desk, Tokens: desk, Key: s.keys.Derive("sessions"),
		Times: session.Times{Idle: c.Sessions.Idle, Absolute: c.Sessions.Absolute},
		Pages: desk.Handler, Provider: identityProvider(s.cfg.Server).Name,
	}, nil
}

func identityProvider(c config.Server) login.Provider {
	oidc := c.Access.OIDC
	p := login.Provider{
		Name: oidc.Name, Issuer: oidc.Issuer, ClientID: oidc.ClientID, Redirect: strings.TrimRight(c.API.URL, "/") + login.CallbackPath,
		Scopes: oidc.Scopes, NameClaim: oidc.NameClaim, GroupsClaim: oidc.GroupsClaim,
	}
	if issuer, err := url.Parse(oidc.Issuer); err == nil {
		p.Name = cmp.Or(p.Name, issuer.Host)
	}
	if p.Scopes == nil {
		p.Scopes = []string{"profile", "email", "groups"}
	}
	if !oidc.ClientSecret.IsZero() {
		p.Secret = oidc.ClientSecret.Value
	}
	return p
}

// roleBindings are those of the configuration.
func roleBindings(c config.Access) []access.Binding {
	var all []access.Binding
	for _, b := range c.Bindings {
		binding := access.Binding{Role: access.Role(b.Role), Projects: b.Projects, Groups: b.Groups, Everyone: b.Everyone}
		for _, subject := range b.People {
			binding.People = append(binding.People, access.PersonID{Issuer: c.OIDC.Issuer, Subject: subject})
		}
		all = append(all, binding)
	}
	return all
}
