// Package launch has runs executed by runners that start something for each of them, such
// as a Kubernetes Job.
//
// It owns the way of such an attempt until its agent has called: the claim in the name of
// what will execute it, the ticket, the start, the signs of life that the server gives for
// it meanwhile, and the deadline for all that. It says on the run what its start waits for.
// It looks at what was started again and again, also at what a former process or another
// replica has started: nothing is remembered that cannot be found again.
//
// cmd/holdfast/serve runs a Pool, which has a Launcher for each runner in force. How things
// are started is a Jobs, such as a kubernetes.Cluster.
//
// It never ends an attempt that may still be executed: only one whose ticket nobody has
// shown, which nobody can after that, and one of whose processes their machine has reported
// that they ended. What is deleted, or silent, proves nothing: the lease of such an attempt
// ends as that of any other.
package launch
