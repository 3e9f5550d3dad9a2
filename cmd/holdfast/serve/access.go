package serve

import (
	"cmp"
	"net/http"
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
	how := server.Login{
		Sessions: s.store, Key: s.keys.Derive("sessions"),
		Times: session.Times{Idle: c.Sessions.Idle, Absolute: c.Sessions.Absolute},
	}
	if c.OIDC.Issuer == "" {
		return how, nil
	}
	desk, err := login.New(login.Options{
		People: s.store, Provider: identityProvider(s.cfg.Server), Bindings: roleBindings(c), Reserved: names(tokens),
		Logger: s.logger, Now: s.clock.Now,
	})
	if err != nil {
		return how, err
	}
	how.People, how.Provider = desk, identityProvider(s.cfg.Server).Name
	how.Pages = func(sessions *session.Sessions) http.Handler { return desk.Handler(sessions) }
	return how, nil
}

func names(tokens []server.Token) []string {
	var all []string
	for _, token := range tokens {
		all = append(all, token.Name)
	}
	return all
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
