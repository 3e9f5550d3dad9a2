// Package server is Holdfast's HTTP front end: three listeners, each for one kind of
// peer. Code hosts deliver webhooks to the public one; people and their tools
// use the API and the console with a token or a session; agents speak the agent protocol,
// and through them engines the state backend, with a credential of one run.
//
// It translates between HTTP and small interfaces that it declares (ports.go, api_ports.go).
// What the API says is made by api/v1. Server owns the listeners and the order in which they
// close; apiServer and agentServer are the handlers of a listener each, on a base that they
// share; the API's handlers are grouped by what they are about (api_runs.go and so on);
// pages.go mounts the console (room pages). Command serve wires it. It keeps no records, and
// decides nothing but who may do what.
package server
