// Package propose makes pull requests that add, change or remove the document of a cluster,
// as somebody asks for through Holdfast.
//
// It owns how a document is made from a request, and where in a repository it is
// put. What a pull request would say of the change is asked of the intake before one is made:
// what would be wrong with it is answered instead. The reconciler calls it for the API. It
// records nothing, plans nothing and applies nothing: the pull request goes the way of all
// others, and who asked for it cannot approve it.
package propose
