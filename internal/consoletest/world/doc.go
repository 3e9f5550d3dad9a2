// Package world is an invented fleet for pictures and tests of the console: an API that
// answers as the server's would, with clusters, runs, plans, logs and trouble of all kinds.
//
// It owns the invention: names, numbers, what failed and why. The pictures of `make screenshots`
// and the tests in a browser read it. It never runs an engine and keeps nothing; what the
// real API says is tested with the real server.
package world
