// Package pages answers with the pages of the console.
//
// It owns what a page consists of: it asks the API for it, in the name of whoever asked
// for the page, and fills the view models of package console with the answers. It knows
// nothing that the API does not say: a request for a page becomes requests to the API's
// own handler, with the credentials of the first, so that what somebody may not see is
// absent here for the same reason and in the same words. The server mounts it on the
// listener of the API. What people do on pages, by buttons and forms, is package forms; it is
// answered here (posts.go). It never reads a record, and keeps nothing but the colours of a
// browser and, until the next page, what came of a form.
package pages
