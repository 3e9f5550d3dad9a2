// Package previous builds the holdfast that spoke the previous protocol with agents: for tests
// of a server that is upgraded before its agents.
//
// It owns which commit that is (the file COMMIT), how it is taken out of the history of this
// repository, and where the program is kept: once for all clones, in a cache folder of the user.
// Whoever raises protocol.Version writes the last commit before that into the file. The
// end-to-end tests call it. No other program knows it.
package previous
