package holdfast

// startReasons are why what a runner starts for a run does not start, or has ended.
var startReasons = map[Reason]ReasonInfo{
	CauseEvicted: {
		Effect: Explains, Cause: true, Words: "the node evicted the Pod of the run: it is short of memory or disk, is drained, or was preempted",
		Transient: "if nothing was applied",
		Hint:      "Read the failure; give Jobs `resources` that the node can keep, or keep them on nodes that are not drained",
	},
	CauseImagePullFailed: {
		Effect: Explains, Cause: true, Words: "the image of the runner's Jobs cannot be pulled",
		Transient: "always",
		Hint:      "Check `job.image` and `job.pullSecrets` of the runner: the failure has the registry's answer", See: "runners-kubernetes.md#when-a-job-does-not-start",
	},
	CauseJobDeadline: {
		Effect: Explains, Cause: true, Words: "the Job was active for longer than its deadline",
		Transient: "if nothing was applied",
		Hint:      "Look at what the Pod waited for; raise `runs.timeout` if runs need longer", See: "runners-kubernetes.md#when-a-job-does-not-start",
	},
	CauseJobDeleted: {
		Effect: Explains, Cause: true, Words: "somebody deleted the run's Job or its Pod",
		Transient: "if nothing was applied",
		Hint:      "Use `holdfast cancel` instead", See: "runners-kubernetes.md#when-a-job-disappears",
	},
	CauseNamespaceMissing: {
		Effect: Explains, Cause: true, Words: "the namespace of the runner's Jobs does not exist, or is being deleted",
		Transient: "always",
		Hint:      "Create it with its Role and service accounts, or correct `job.namespace` of the runner", See: "runners-kubernetes.md#install",
	},
	CauseNodeLost: {
		Effect: Explains, Cause: true, Words: "the node of the run's Pod is gone",
		Transient: "if nothing was applied",
		Hint:      "Look at the node; an apply that had begun needs `holdfast unlock` once the machine is certainly off", See: "runners-kubernetes.md#when-a-job-disappears",
	},
	CausePodConfiguration: {
		Effect: Explains, Cause: true, Words: "the Pod of the run was refused, or its container cannot be started: a service account, a Secret, a volume, a security context",
		Transient: "always",
		Hint:      "Read the failure: it has the cluster's own words; correct the runner's `job`", See: "runners-kubernetes.md#when-a-job-does-not-start",
	},
	CausePodTemplateRefused: {
		Effect: Explains, Cause: true, Words: "the Job cannot be made of what the runner and the cluster ask for: a Pod template changes what is reserved, `spec.runner` exceeds what the runner allows, or the API server finds it invalid",
		Hint: "Correct the template that the failure names", See: "runners-kubernetes.md#pod-templates",
	},
	CauseRunnerForbidden: {
		Effect: Explains, Cause: true, Words: "the server's account may not start Jobs in the runner's namespace",
		Transient: "always",
		Hint:      "Bind the Role of `deploy/kubernetes/runner-role.yaml` to the account there", See: "runners-kubernetes.md#install",
	},
	CauseRunnerQuota: {
		Effect: Explains, Cause: true, Words: "the quota of the runner's namespace is used up",
		Transient: "always",
		Hint:      "Wait for other Jobs to end, raise the ResourceQuota, or set `maxRuns` of the runner",
	},
	CauseRunnerUnauthorized: {
		Effect: Explains, Cause: true, Words: "the runner's API server does not accept the server's token: it has expired, or was revoked",
		Transient: "always",
		Hint:      "Replace the secret that the runner's `kubernetes` refers to",
	},
	CauseRunnerUnreachable: {
		Effect: Explains, Cause: true, Words: "the runner's API server cannot be reached",
		Transient: "always",
		Hint:      "Look at the network between the server and that cluster, and at the address in the runner's `kubernetes`",
	},
	CauseRunnerUnusable: {
		Effect: Explains, Cause: true, Words: "the runner cannot be used as it is configured",
		Transient: "always",
		Hint:      "Read the failure: it names the setting or the secret; correct the runner's document or holdfast.yaml",
	},
	CauseStartTimeout: {
		Effect: Explains, Cause: true, Words: "what was started for the run has not called the server in time",
		Transient: "always",
		Hint:      "Look at the Pod, and whether it reaches `server.agents.url`", See: "runners-kubernetes.md#when-a-job-does-not-start",
	},
	CauseUnschedulable: {
		Effect: Explains, Cause: true, Words: "no node of the runner's cluster fits the Pod of the run",
		Transient: "always",
		Hint:      "Give the cluster a node with room; check `nodeSelector`, `tolerations` and resources", See: "runners-kubernetes.md#when-a-job-does-not-start",
	},
}
