// Package claims says what tokens of runs say: who a run is, in the words that clouds and
// secret stores match.
//
// It owns the form of subjects and claims. The issuer calls it for each token, and the
// configuration for the length of subjects. It is pure: it signs nothing, and reads neither
// clocks nor records.
package claims
