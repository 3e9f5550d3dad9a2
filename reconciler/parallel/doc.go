// Package parallel does a number of equal pieces of work at once.
package parallel
