// Package money is exact decimal amounts: what a price is, and what it is multiplied with.
//
// All rooms of package cost calculate with it, and only here the decimal library is known.
// An amount has no currency: those who add amounts see to it that they are of one. It
// never rounds except for display, and knows no floating-point number.
package money
