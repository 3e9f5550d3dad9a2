package server

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// requireHost is for what is answered without a token: a page in a browser on
// this machine can give itself a name that leads to loopback, and read it. What
// comes over loopback needs an address or a known name, wherever the API listens.
func (s *apiServer) requireHost(c *gin.Context) {
	if !overLoopback(c.Request) || s.isExpected(c.Request.Host) {
		return
	}
	s.refuse(c, http.StatusMisdirectedRequest, "this is not the name of this server",
		"use localhost, an address, or the name in server.api.url")
}

func (s *apiServer) isExpected(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	return net.ParseIP(name) != nil || name == "localhost" || strings.HasSuffix(name, ".localhost") ||
		slices.ContainsFunc(s.opts.Hosts, func(known string) bool { return strings.EqualFold(known, name) })
}

// overLoopback reports whether a request comes from this machine, by loopback.
func overLoopback(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return local != nil && local.IP.IsLoopback()
}
