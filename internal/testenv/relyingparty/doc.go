// Package relyingparty stands for those who trust the tokens of an issuer: AWS's and Google's
// token services, Microsoft's, and Vault. Each finds the issuer's keys by discovery, over TLS,
// and is as strict as the real one in what tests can get wrong. It is for tests only.
package relyingparty
