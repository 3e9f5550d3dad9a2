// Package outputs says what the outputs of a run say of its cluster: the address of
// its API, how many nodes it has, and which output holds its credentials.
//
// It owns the roles that a template gives to outputs, as far as they are read: what
// counts as an address or a number, and what is ignored. A Reader is asked when a
// cluster's record is written, after an apply and after a drift check. It writes no
// record itself, and repeats no value that may be secret.
package outputs
