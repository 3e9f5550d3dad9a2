// Package published lists the templates that repositories publish.
//
// It owns what people see of a template: its versions and what is wrong with them,
// the clusters that are made from it, how far each is behind, what proposes a newer
// version to it, and why that is not proposed. The server asks a List through the
// reconciler. It only reads: package upgrade proposes newer versions.
package published
