package holdfast

// startReasons are why what a runner starts for a run does not start, or has ended.
var startReasons = map[Reason]ReasonInfo{
	CauseCapacityUnavailable: {
		Effect: Explains, Cause: true, Words: "AWS has no capacity for the run's task at the moment",
		Transient: "always",
		Hint:      "Wait, or give the runner subnets in further availability zones", See: "runners-ecs.md#when-a-task-does-not-start",
	},
	CauseCloudForbidden: {
		Effect: Explains, Cause: true, Words: "the server's identity in the runner's cloud lacks a permission",
		Transient: "always",
		Hint:      "Read the failure: it names the permission; grant it to the role or account of the runner", See: "runners-clouds.md#when-the-cloud-refuses",
	},
	CauseCloudIdentityRefused: {
		Effect: Explains, Cause: true, Words: "the runner's cloud does not accept the server's token: its role cannot be assumed, or its account cannot be used",
		Transient: "always",
		Hint:      "Read the failure; compare issuer, audience and subject with the trust policy of the role, or with the workload identity provider", See: "runners-clouds.md#when-the-cloud-refuses",
	},
	CauseEvicted: {
		Effect: Explains, Cause: true, Words: "the node evicted the Pod of the run: it is short of memory or disk, is drained, or was preempted",
		Transient: "if nothing was applied",
		Hint:      "Read the failure; give Jobs `resources` that fit the node, or run them on nodes that are not drained",
	},
	CauseImagePullFailed: {
		Effect: Explains, Cause: true, Words: "the image of the runner's Jobs or tasks cannot be pulled",
		Transient: "always",
		Hint:      "Check the image in the runner's `job` or `ecs`, and who may pull it: the failure has the registry's answer", See: "runners-kubernetes.md#when-a-job-does-not-start",
	},
	CauseJobDeadline: {
		Effect: Explains, Cause: true, Words: "the Job or task was active for longer than its deadline",
		Transient: "if nothing was applied",
		Hint:      "Look at what the Pod waited for; raise `runs.timeout` if runs need longer", See: "runners-kubernetes.md#when-a-job-does-not-start",
	},
	CauseJobDeleted: {
		Effect: Explains, Cause: true, Words: "somebody deleted the run's Job or its Pod, or stopped its task",
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
		Hint:      "Read the failure: it contains the cluster's error; correct the runner's `job`", See: "runners-kubernetes.md#when-a-job-does-not-start",
	},
	CausePodTemplateRefused: {
		Effect: Explains, Cause: true, Words: "the Job or task cannot be created as the runner and the cluster request: a Pod template changes reserved fields, `spec.runner` exceeds what the runner allows, or the API rejects it",
		Hint: "Correct what the failure names", See: "runners-kubernetes.md#pod-templates",
	},
	CauseRunnerClusterMissing: {
		Effect: Explains, Cause: true, Words: "the cluster that the runner names does not exist in its cloud",
		Transient: "always",
		Hint:      "Correct name, region, location or project in the runner's document", See: "runners-clouds.md#when-the-cloud-refuses",
	},
	CauseRunnerForbidden: {
		Effect: Explains, Cause: true, Words: "the server's account may not start Jobs in the runner's namespace",
		Transient: "always",
		Hint:      "Bind the Role of `deploy/kubernetes/runner-role.yaml` to the account there", See: "runners-kubernetes.md#install",
	},
	CauseRunnerQuota: {
		Effect: Explains, Cause: true, Words: "the quota of the runner's namespace, or of its account in AWS, is used up",
		Transient: "always",
		Hint:      "Wait for other Jobs or tasks to end, raise the quota, or set `maxRuns` of the runner",
	},
	CauseRunnerUnauthorized: {
		Effect: Explains, Cause: true, Words: "the runner's API server does not accept the server's token: it has expired or was revoked, or the cluster does not recognize it",
		Transient: "always",
		Hint:      "Replace the secret that the runner's `kubernetes` refers to; on EKS, give its role an access entry", See: "runners-clouds.md#when-the-cloud-refuses",
	},
	CauseRunnerUnreachable: {
		Effect: Explains, Cause: true, Words: "the runner's API server, or its cloud, cannot be reached",
		Transient: "always",
		Hint:      "Read the failure: it names the service that does not answer; check the network in between, and the addresses in the runner's document",
	},
	CauseRunnerUnusable: {
		Effect: Explains, Cause: true, Words: "the runner cannot be used as it is configured",
		Transient: "always",
		Hint:      "Read the failure: it names the setting or the secret; correct the runner's document or holdfast.yaml",
	},
	CauseStartTimeout: {
		Effect: Explains, Cause: true, Words: "the Job or task of the run has not contacted the server in time",
		Transient: "always",
		Hint:      "Look at the Pod or task, and whether it reaches `server.agents.url`", See: "runners-kubernetes.md#when-a-job-does-not-start",
	},
	CauseTaskConfiguration: {
		Effect: Explains, Cause: true, Words: "the task of the run was refused, or its container cannot be started: a role, a subnet, a secret, the network",
		Transient: "always",
		Hint:      "Read the failure: it contains the error of AWS; correct the runner's `ecs`", See: "runners-ecs.md#when-a-task-does-not-start",
	},
	CauseTaskInterrupted: {
		Effect: Explains, Cause: true, Words: "AWS stopped the run's task: its host was retired, or its capacity reclaimed",
		Transient: "if nothing was applied",
		Hint:      "Nothing to do if it happened once; an apply that had begun is planned again", See: "runners-ecs.md#while-it-runs",
	},
	CauseUnschedulable: {
		Effect: Explains, Cause: true, Words: "no node of the runner's cluster fits the Pod of the run",
		Transient: "always",
		Hint:      "Give the cluster a node with room; check `nodeSelector`, `tolerations` and resources", See: "runners-kubernetes.md#when-a-job-does-not-start",
	},
}
