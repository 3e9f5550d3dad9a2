// Package impact says what a pull request's change of a template would do.
//
// The root modules of all clusters that are made from the template are rendered with
// it as it is and as it would be, and grouped by how they change; a sample of each
// group is planned. A merge applies none of them: clusters move when their own
// documents name another version. The reconciler has an open pull request assessed
// when it or the fleet has changed; what was found out of documents that have not
// changed is remembered. A Keeper saves impacts and names samples; it neither plans
// nor decides.
package impact
