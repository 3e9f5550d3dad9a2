// Package hclvalue owns the values that a template document writes for modules: texts
// with references such as ${var.region}, in lists and mappings, and how each is rendered
// as HCL that says exactly this and nothing else.
//
// The package of templates calls it. It knows neither documents nor modules: what a
// reference leads to is looked up by its caller.
package hclvalue
