// Package rollout is what is known of how versions of templates reach clusters: what a change
// of a template would do to the fleet (Impact), the pull requests of ours that move clusters to
// newer versions (Upgrade), and which versions there are, with who uses them (TemplateStatus).
//
// The rooms reconciler/impact, reconciler/upgrade and reconciler/published make these,
// datastore keeps them, report and the API show them. It is pure, and knows the vocabulary and
// nobody else. Templates themselves are read by package templates.
package rollout
