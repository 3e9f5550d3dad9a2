package github

import (
	"errors"
	"net/url"
	"strings"
)

// Endpoints are where a GitHub is reached.
type Endpoints struct {
	// API is the base of the REST API, with a slash at its end.
	API *url.URL
	// Web is where people look and Git clones from, without a slash at its end.
	Web *url.URL
}

// EndpointsOf returns where the GitHub is that a URL names: one of its REST API,
// or the one that people know. Empty means github.com.
//
//	https://github.com, https://api.github.com        API https://api.github.com/
//	https://acme.ghe.com, https://api.acme.ghe.com    API https://api.acme.ghe.com/
//	https://HOST, https://HOST/api/v3                 API https://HOST/api/v3/
//
// A path of another form is the API's as it is: of a proxy in front of it.
func EndpointsOf(raw string) (Endpoints, error) {
	if raw == "" {
		raw = publicURL
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return Endpoints{}, errors.New("github: the base URL is not an http or https URL")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return Endpoints{}, errors.New("github: the base URL has a user, a query or a fragment")
	}
	path := strings.Trim(u.Path, "/")
	at := func(host, path string) *url.URL { return &url.URL{Scheme: u.Scheme, Host: host, Path: path} }
	host := strings.ToLower(u.Host)
	name := strings.TrimPrefix(strings.TrimPrefix(host, "api."), "www.")
	cloud := name == "github.com" || strings.HasSuffix(name, ".ghe.com")
	switch {
	case cloud && (path == "" || path == "api/v3"):
		return Endpoints{API: at("api."+name, "/"), Web: at(name, "")}, nil
	case path == "":
		return Endpoints{API: at(u.Host, "/api/v3/"), Web: at(u.Host, "")}, nil
	default:
		prefix, isEnterprise := strings.CutSuffix("/"+path, "/api/v3")
		if !isEnterprise {
			prefix = ""
		}
		return Endpoints{API: at(u.Host, "/"+path+"/"), Web: at(u.Host, prefix)}, nil
	}
}

// OwnsURL reports whether a URL that Git clones from is of the same GitHub: our
// credential is for that one only.
func (e Endpoints) OwnsURL(clone string) bool {
	u, err := url.Parse(clone)
	return err == nil && u.Scheme == e.Web.Scheme && strings.EqualFold(u.Hostname(), e.Web.Hostname())
}
