package server

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// requireHost is for what is answered without a token: a page in a browser on
// this machine can give itself a name that leads to loopback, and read it. Where
// the API listens on loopback only, addresses and known names pass.
func (s *apiServer) requireHost(c *gin.Context) {
	if !isLoopback(s.address) || s.isExpected(c.Request.Host) {
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

// isLoopback reports whether whoever listens at address is reached from this
// machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback())
}
