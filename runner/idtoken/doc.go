// Package idtoken gives the engine of an attempt the identity of its run: files with tokens,
// which are renewed as long as the attempt lasts, and the environment in which the SDKs of
// clouds and Vault look for them.
//
// It owns what each of them reads, and when a token is renewed. The attempt opens one Keeper
// before anything is started, and closes it at its end. Tokens come from the server, which
// decides what they say; here nobody chooses more than one of the audiences of the assignment.
//
// It never gives a token to anybody but the engine of its attempt, whose sandbox alone sees
// the folder, and writes none before the log is searched for it.
package idtoken
