// Package forge holds the adapters to code hosts, one folder for each. What
// they share is the interface that package reconciler declares; nothing else
// has been worth sharing.
package forge
