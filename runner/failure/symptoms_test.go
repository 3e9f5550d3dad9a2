package failure_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

// said are errors as engines and providers print them, with what they mean.
var said = map[string]struct {
	text   string
	cause  holdfast.Reason
	passes bool
	hint   string // a word of it
}{
	"a stale plan":                {"Error: Saved plan is stale\n\nThe given plan file can no longer be applied because the state was changed by\nanother operation after the plan was created.", "StalePlan", false, "new plan"},
	"a condition of the author's": {"Error: Resource precondition failed\n\n  on main.tf line 5, in resource \"x\" \"y\":\n   5:   condition = false\n\nThe quota is exceeded and the connection refused.", "InvalidConfiguration", false, "condition"},

	"a held lock, http":          {"Error: Error acquiring the state lock\n\nError message: HTTP remote state already locked: ID=abc\nLock Info:\n  ID:        3f2a5e9e\n  Who:       root@vm\n", "StateLocked", true, "unlock"},
	"a held lock, dynamodb":      {"Error: Error acquiring the state lock\n\nError message: operation error DynamoDB: PutItem, https response error StatusCode: 400,\nRequestID: X, ConditionalCheckFailedException: The conditional request failed\nLock Info:\n  ID: x\n", "StateLocked", true, "unlock"},
	"a held lock, azurerm":       {"Error: Error acquiring the state lock\n\nError message: state blob is already locked\nLock Info:\n  ID: x\n", "StateLocked", true, "unlock"},
	"a held lock, gcs":           {"Error: Error acquiring the state lock\n\nError message: writing\n\"gs://b/default.tflock\" failed: googleapi: Error 412: At least one of the\npre-conditions you specified did not hold., conditionNotMet\nLock Info:\n  ID: 1\n", "StateLocked", true, "unlock"},
	"a lock without auth":        {"Error: Error acquiring the state lock\n\nError message: HTTP remote state endpoint requires auth\n\nTerraform acquires a state lock to protect the state from being written\nby multiple users at the same time.", "StateBackend", false, "credentials"},
	"a lock out of reach":        {"Error: Error acquiring the state lock\n\nError message: Failed to lock: LOCK http://127.0.0.1:28999/x giving up\nafter 1 attempt(s)\n", "StateBackend", true, "reach"},
	"a lock not permitted":       {"Error: Error acquiring the state lock\n\nError message: operation error DynamoDB: PutItem, https response error StatusCode: 400,\nRequestID: X, api error AccessDeniedException: User: arn:aws:iam::1:user/x is\nnot authorized to perform: dynamodb:PutItem on resource: x", "StateBackend", false, "permission"},
	"a state without auth":       {"Error: Error refreshing state: HTTP remote state endpoint invalid auth\n", "StateBackend", false, "credentials"},
	"a state out of reach":       {"Error: error loading state: Failed to get state: GET http://127.0.0.1:1/ giving up after 1 attempt(s): Get \"http://127.0.0.1:1/\": dial tcp 127.0.0.1:1: connect: connection refused\n", "StateBackend", true, "reach"},
	"a state that is not JSON":   {"Error: Error refreshing state: 2 problems:\n\n- Unsupported state file format: The state file could not be parsed as JSON: syntax error at byte offset 1.\n", "StateBackend", false, "backend"},
	"a state not permitted":      {"Error: Error loading state: AccessDenied: Access Denied\n\tstatus code: 403, request id: 723F711C", "StateBackend", false, "permission"},
	"a state with a checksum":    {"Error: error loading state: state data in S3 does not have the expected content.\n\nThe checksum calculated for the state stored in S3 does not match the checksum\nstored in DynamoDB.", "StateBackend", false, "backend"},
	"a bucket that is not there": {"Error: Failed to get existing workspaces: S3 bucket \"x\" does not exist.\n\nThe referenced S3 bucket must have been previously created.", "StateBackend", false, "backend"},

	"a full disk":                  {"Error: Failed to install provider\n\nError while installing hashicorp/aws v5.0.0: write\n/data/x: no space left on device", "DiskFull", true, "disk"},
	"no memory":                    {"fatal error: runtime: out of memory\n\ngoroutine 1 [running]:\n", "OutOfMemory", true, "memory"},
	"no memory for a fork":         {"Error: Failed to load plugin schemas\n\nfork/exec .terraform/providers/x: cannot allocate memory", "OutOfMemory", true, "memory"},
	"a provider that crashed":      {"Error: Plugin did not respond\n\n  with aws_subnet.a,\n  on main.tf line 1, in resource \"aws_subnet\" \"a\":\n   1: resource\n\nThe plugin encountered an error, and failed to respond to the\nplugin.(*GRPCProvider).UpgradeResourceState call. The plugin logs may contain\nmore details.\n\nStack trace from the terraform-provider-aws_v4.43.0_x5 plugin:\n\npanic: runtime error: invalid memory address or nil pointer dereference\n\nError: The terraform-provider-aws_v4.43.0_x5 plugin crashed!\n", "ProviderCrashed", false, "version"},
	"a provider that died":         {"Error: Plugin did not respond\n\nThe plugin encountered an error, and failed to respond to the\nplugin.(*GRPCProvider).ReadResource call. The plugin logs may contain more\ndetails.\n", "ProviderCrashed", true, "memory"},
	"a provider that broke off":    {"Error: Request cancelled\n\n  with cloud_cluster.main,\n  on main.tf line 9, in resource \"cloud_cluster\" \"main\":\n   9: resource \"cloud_cluster\" \"main\" {\n\nThe plugin.(*GRPCProvider).ApplyResourceChange request was cancelled.\n", "ProviderCrashed", true, "memory"},
	"a provider too slow to start": {"Error: Failed to instantiate provider \"x\" to obtain schema: timeout while waiting for plugin to start", "ProviderCrashed", true, "overloaded"},

	"throttled, aws":               {"Error: creating EKS Node Group (x:y): operation error EKS: CreateNodegroup, exceeded maximum number of attempts, 25, https response error StatusCode: 400, RequestID: x, api error ThrottlingException: Rate exceeded", "Throttled", true, "rate"},
	"throttled, azure":             {"Error: retrieving Resource Group \"x\": unexpected status 429 (429 Too Many Requests) with error: TooManyRequests", "Throttled", true, "rate"},
	"throttled, google":            {"Error: Error when reading or editing ComputeReservation \"x\": googleapi: Error 403: Quota exceeded for quota group 'ReadGroup' and limit 'Read requests per user per 100 seconds' of service 'compute.googleapis.com' for consumer 'project_number:1'., rateLimitExceeded", "Throttled", true, "rate"},
	"throttled, linode":            {"Error: failed to get LKE cluster: [429] Too many requests", "Throttled", true, "rate"},
	"a quota, aws":                 {"Error: creating EC2 Instance: operation error EC2: RunInstances, api error VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows", "Quota", false, "quota"},
	"a quota, azure":               {"Error: creating Linux Virtual Machine: performing CreateOrUpdate: unexpected status 409 (409 Conflict) with error: OperationNotAllowed: Operation could\nnot be completed as it results in exceeding approved Total Regional Cores quota.", "Quota", false, "quota"},
	"a quota, google":              {"Error: Error waiting for instance to create: Quota 'CPUS' exceeded.  Limit: 24.0 in region europe-west1.", "Quota", false, "quota"},
	"no capacity":                  {"Error: creating EC2 Instance: api error InsufficientInstanceCapacity: We currently do not have sufficient m5.large capacity in the Availability Zone you requested", "Quota", false, "zone"},
	"no credentials, aws":          {"Error: No valid credential sources found\n\nPlease see https://registry.terraform.io/providers/hashicorp/aws\nfor more information about providing credentials.\n\nError: failed to refresh cached credentials, no EC2 IMDS role found, operation error ec2imds: GetMetadata, request canceled, context deadline exceeded", "Credentials", false, "credentials"},
	"expired, aws":                 {"Error: reading EKS Cluster (x): operation error EKS: DescribeCluster, https response error StatusCode: 403, RequestID: x, api error ExpiredTokenException: The security token included in the request is expired", "Credentials", false, "credentials"},
	"no credentials, azure":        {"Error: unable to build authorizer for Resource Manager API: could not configure AzureCli Authorizer: AADSTS700082: The refresh token has expired", "Credentials", false, "credentials"},
	"no credentials, google":       {"Error: Attempted to load application default credentials since neither `credentials` nor `access_token` was set in the provider block.  No credentials loaded. google: could not find default credentials.", "Credentials", false, "credentials"},
	"no credentials, linode":       {"Error: failed to get Linode account: [401] Invalid Token", "Credentials", false, "credentials"},
	"no credentials, kubernetes":   {"Error: Unauthorized\n\n  with kubernetes_namespace.x,\n  on main.tf line 1:\n   1: x\n", "Credentials", false, "credentials"},
	"no kubernetes configuration":  {"Error: Failed to initialize kubernetes configuration: invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable\n", "Credentials", false, "KUBE_CONFIG_PATH"},
	"a missing kubeconfig":         {"Error: Failed to get existing workspaces: Get \"http://localhost/api/v1/namespaces/default/secrets?labelSelector=tfstate%3Dtrue\": dial tcp 127.0.0.1:80: connect: connection refused\n", "StateBackend", false, "KUBE_CONFIG_PATH"},
	"a provider without a cluster": {"Error: Get \"http://localhost/api/v1/namespaces/x\": dial tcp [::1]:80: connect: connection refused\n\n  with kubernetes_namespace.x,\n  on main.tf line 1:\n   1: x\n", "Credentials", false, "KUBE_CONFIG_PATH"},
	"no key for a module":          {"Error: Failed to download module\n\nCould not download module \"x\" (main.tf:1) source code from\n\"git::ssh://git@github.com/x/y\": error downloading: git exited with 128:\nPermission denied (publickey).\nfatal: Could not read from remote repository.", "Credentials", false, "credentials"},
	"not permitted, aws":           {"Error: creating IAM Role (x): operation error IAM: CreateRole, https response error StatusCode: 403, RequestID: x, api error AccessDenied: User: arn:aws:sts::1:assumed-role/x is not authorized to perform: iam:CreateRole on resource: y because no identity-based policy allows the iam:CreateRole action", "Permission", false, "permission"},
	"not permitted, azure":         {"Error: creating Resource Group \"x\": unexpected status 403 (403 Forbidden) with error: AuthorizationFailed: The client 'x' with object id 'x' does not have authorization to perform action 'Microsoft.Resources/subscriptions/resourcegroups/write'", "Permission", false, "permission"},
	"not permitted, google":        {"Error: Error creating Network: googleapi: Error 403: Required 'compute.networks.create' permission for 'projects/x/global/networks/y', forbidden", "Permission", false, "permission"},
	"a file that is another's":     {"Error: Invalid function argument\n\n  on main.tf line 1, in output \"x\":\n   1: output\n\nInvalid value for \"path\" parameter: failed to read \"/var/lib/x\": open\n/var/lib/x/key: permission denied.", "Permission", false, "agent's user"},

	"a service that is down":         {"Error: reading S3 Bucket (x): operation error S3: HeadBucket, https response error StatusCode: 503, RequestID: x, api error ServiceUnavailable: Service Unavailable", "ServiceUnavailable", true, "status"},
	"an error of Google's":           {"Error: Error reading Cluster: googleapi: Error 500: Internal error encountered., backendError", "ServiceUnavailable", true, "status"},
	"no name":                        {"Error: Error accessing remote module registry\n\nFailed to retrieve available versions for module \"x\" (main.tf:1) from\nregistry.invalid: failed to request discovery document: Get\n\"https://registry.invalid/.well-known/terraform.json\": dial tcp: lookup\nregistry.invalid on 10.255.255.53:53: no such host.", "Network", true, "reach"},
	"no route to a module":           {"Error: Failed to download module\n\nCould not download module \"x\" (main.tf:1) source code from\n\"git::https://127.0.0.1:1/x.git\": /usr/bin/git exited with 128:\nfatal: unable to access 'https://127.0.0.1:1/x.git/': Failed to connect to\n127.0.0.1 port 1 after 0 ms: Couldn't connect to server", "Network", true, "reach"},
	"a database that starts":         {"Error: pq: the database system is starting up\n", "ServiceUnavailable", true, "database"},
	"a database that ends":           {"Error: Error loading state: pq: terminating connection due to administrator command\n", "StateBackend", true, "reach"},
	"a database that is full":        {"Error: pq: sorry, too many clients already\n", "ServiceUnavailable", true, "connections"},
	"a database that is gone":        {"Error: Error loading state: driver: bad connection\n", "StateBackend", true, "reach"},
	"a schema not permitted":         {"Error: pq: permission denied for schema terraform_remote_state\n", "Permission", false, "permission"},
	"a connection that ends":         {"Error: reading Server (x): Get \"https://api.example.com/servers/x\": EOF\n", "Network", true, "can reach"},
	"a slow network":                 {"Error: Error reading Container NodePool x: Get https://container.googleapis.com/v1beta1/projects/x: net/http: request canceled (Client.Timeout exceeded while awaiting headers)", "Network", true, "reach"},
	"a strange certificate, Git":     {"Error: Failed to download module\n\nCould not download module \"x\" (main.tf:1) source code from\n\"git::https://git.example.com/x.git\": error downloading\n'https://git.example.com/x.git': /usr/bin/git exited with\n128: Cloning into '.terraform/modules/x'...\nfatal: unable to access 'https://git.example.com/x.git/': server\ncertificate verification failed. CAfile: none CRLfile: none", "Network", false, "GIT_SSL_CAINFO"},
	"a strange certificate, libcurl": {"Error: Failed to download module\n\nCould not download module \"x\" (main.tf:1) source code from\n\"git::https://git.example.com/x.git\": error downloading\n'https://git.example.com/x.git': /usr/bin/git exited with\n128: Cloning into '.terraform/modules/x'...\nfatal: unable to access 'https://git.example.com/x.git/': SSL certificate\nproblem: unable to get local issuer certificate", "Network", false, "GIT_SSL_CAINFO"},
	"Git is cut off":                 {"Error: Failed to download module\n\nCould not download module \"x\" (main.tf:1) source code from\n\"git::https://git.example.com/x.git\": error downloading\n'https://git.example.com/x.git': /usr/bin/git exited with\n128: Cloning into '.terraform/modules/x'...\nfatal: unable to access 'https://git.example.com/x.git/': GnuTLS\nrecv error (-110): The TLS connection was non-properly terminated.", "Network", true, "reach"},
	"Git's host is away":             {"Error: Failed to download module\n\nCould not download module \"x\" (main.tf:1) source code from\n\"git::https://git.example.com/x.git\": error downloading\n'https://git.example.com/x.git': /usr/bin/git exited with\n128: Cloning into '.terraform/modules/x'...\nfatal: unable to access 'https://git.example.com/x.git/': The requested\nURL returned error: 503", "ServiceUnavailable", true, "status page"},
	"no such repository, Git":        {"Error: Failed to download module\n\nCould not download module \"x\" (main.tf:1) source code from\n\"git::https://git.example.com/x.git\": error downloading\n'https://git.example.com/x.git': /usr/bin/git exited with\n128: Cloning into '.terraform/modules/x'...\nfatal: repository 'https://git.example.com/x.git/' not found", "NotFound", false, "name"},
	"a mirror's nonsense":            {"Error: Failed to query available provider packages\n\nCould not retrieve the list of available versions for provider\nhashicorp/random: failed to query provider mirror\nhttps://mirror.example.com/ for\nregistry.terraform.io/hashicorp/random: invalid response content from mirror\nserver: invalid character '<' looking for beginning of value", "ServiceUnavailable", true, "address"},
	"a mirror's page":                {"Error: Failed to query available provider packages\n\nCould not retrieve the list of available versions for provider\nhashicorp/random: failed to query provider mirror\nhttps://mirror.example.com/ for\nregistry.terraform.io/hashicorp/random: response has invalid Content-Type:\nmime: no media type", "ServiceUnavailable", true, "address"},
	"no such ref, Git":               {"Error: Failed to download module\n\nCould not download module \"x\" (main.tf:1) source code from\n\"git::https://git.example.com/x.git?ref=v1\": error downloading\n'https://git.example.com/x.git?ref=v1': /usr/bin/git exited with 1:\nerror: pathspec 'v1' did not match any file(s) known to git", "NotFound", false, "name"},
	"a registry's nonsense":          {"Error: Error accessing remote module registry\n\nFailed to retrieve available versions for module \"x\" (main.tf:1) from\nregistry.example.com: invalid character '<' looking for beginning of value.", "ServiceUnavailable", true, "address"},
	"nonsense in the code":           {"Error: Error in function call\n\nCall to function \"jsondecode\" failed: invalid character '<' looking for\nbeginning of value.", "InvalidConfiguration", false, "correct"},
	"a strange certificate":          {"Error: Failed to query available provider packages\n\nCould not retrieve the list of available versions for provider hashicorp/aws:\ncould not connect to registry.terraform.io: Get \"https://x\": tls: failed to verify\ncertificate: x509: certificate signed by unknown authority", "Network", false, "SSL_CERT_FILE"},
	"a slow resource":                {"Error: waiting for EKS Cluster (x) create: timeout while waiting for state to become 'ACTIVE' (last state: 'CREATING', timeout: 30m0s)", "ResourceTimeout", true, "timeouts"},
	"a slow chart":                   {"Error: context deadline exceeded\n\n  with helm_release.x,\n  on main.tf line 1:\n   1: x\n", "ResourceTimeout", true, "timeouts"},

	"it is there already, aws":   {"Error: creating IAM Role (x): EntityAlreadyExists: Role with name x already exists.\n\tstatus code: 409, request id: c2d0", "Conflict", false, "import"},
	"it is there already, azure": {"Error: A resource with the ID \"/subscriptions/x\" already exists - to be managed via Terraform this resource needs to be imported into the State.", "Conflict", false, "import"},
	"it is in use":               {"Error: deleting EC2 Subnet (subnet-1): operation error EC2: DeleteSubnet, https response error StatusCode: 400, RequestID: x, api error DependencyViolation: The subnet 'subnet-1' has dependencies and cannot be deleted.", "Conflict", false, "uses"},
	"it changes just now":        {"Error: googleapi: Error 400: Operation operation-17 is currently in progress for cluster x. Please wait and try again once it is done., failedPrecondition", "Conflict", true, "at the moment"},
	"somebody was faster":        {"Error: Operation cannot be fulfilled on deployments.apps \"x\": the object has been modified; please apply your changes to the latest version and try again", "Conflict", true, "at the moment"},
	"it is not there, aws":       {"Error: reading EC2 VPC (vpc-1): InvalidVpcID.NotFound: The vpc ID 'vpc-1' does not exist", "NotFound", false, "create"},
	"it is not there, google":    {"Error: Error reading Cluster: googleapi: Error 404: Not found: projects/x/locations/y/clusters/z., notFound", "NotFound", false, "create"},
	"nothing matches":            {"Error: Your query returned no results. Please change your search criteria and try again.", "NotFound", false, "create"},

	"no such provider":                {"Error: Failed to query available provider packages\n\nCould not retrieve the list of available versions for provider\nhashicorp/nosuch: provider registry.terraform.io/hashicorp/nosuch was not\nfound in any of the search locations\n\n  - /mirror", "InvalidConfiguration", false, "correct"},
	"no such version":                 {"Error: Failed to query available provider packages\n\nCould not retrieve the list of available versions for provider\nhashicorp/local: no available releases match the given constraints ~> 9.0", "InvalidConfiguration", false, "correct"},
	"no such module":                  {"Error: Unreadable module directory\n\nUnable to evaluate directory symlink: lstat nope: no such file or directory", "InvalidConfiguration", false, "correct"},
	"another engine":                  {"Error: Unsupported Terraform Core version\n\n  on main.tf line 2, in terraform:\n   2:  required_version = \"~> 2.0\"\n\nThis configuration does not support Terraform version 1.11.4.", "InvalidConfiguration", false, "engine.version"},
	"another platform's lock":         {"Error: Failed to install provider\n\nError while installing hashicorp/aws v5.0.0: the local package for\nregistry.terraform.io/hashicorp/aws 5.0.0 doesn't match any of the checksums\npreviously recorded in the dependency lock file", "InvalidConfiguration", false, "lock file"},
	"no value":                        {"Error: No value for required variable\n\n  on main.tf line 1:\n   1: variable \"x\" {}\n\nThe root module input variable \"x\" is not set, and has no default value.", "InvalidConfiguration", false, "correct"},
	"a cycle":                         {"Error: Cycle: local.a (expand), local.b (expand)\n", "InvalidConfiguration", false, "correct"},
	"an argument with a telling name": {"Error: Unsupported argument\n\n  on main.tf line 5, in resource \"x\" \"y\":\n   5:   throttling_burst_limit = 3\n\nAn argument named \"throttling_burst_limit\" is not expected here.", "InvalidConfiguration", false, "correct"},
	"a value the cloud refuses":       {"Error: creating EKS Cluster (x): operation error EKS: CreateCluster, https response error StatusCode: 400, RequestID: x, InvalidParameterException: unsupported Kubernetes version", "InvalidConfiguration", false, "correct"},

	"nothing that is known": {"Error: something odd\n\nIt happened again.", "EngineFailed", false, "engine's message"},
	"no error at all":       {"it just ended\n", "EngineFailed", false, "engine's message"},

	// Several: the one that is not transient decides.
	"one passes and one does not": {"Error: creating x: ThrottlingException: Rate exceeded\n\nError: creating y: AccessDenied: no\n", "Permission", false, "permission"},
	"both pass":                   {"Error: creating x: ThrottlingException: Rate exceeded\n\nError: Get \"https://y\": dial tcp 1.2.3.4:443: i/o timeout\n", "Throttled", true, "rate"},
	"a warning says nothing":      {"Warning: Deprecated: connection refused\n\nError: Invalid index\n\nThe given key does not identify an element.", "InvalidConfiguration", false, "correct"},
}

// failed is how the engine ends.
var failed = &failure.ExitError{Code: 1}

// TestSymptoms: what engines say, in their frames and without, gets its cause,
// whether it passes, and what to do.
func TestSymptoms(t *testing.T) {
	t.Parallel()
	for name, c := range said {
		framed := "╷\n│ " + strings.ReplaceAll(strings.TrimSpace(c.text), "\n", "\n│ ") + "\n╵\n"
		framed = strings.ReplaceAll(framed, "\n│ \n│ Error: ", "\n╵\n╷\n│ Error: ")
		if !strings.Contains(c.text, "Error: ") {
			framed = c.text
		}
		for form, text := range map[string]string{"plain": "\n" + c.text + "\n", "framed": framed} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				f := failure.OfEngine("plan", text, failed)
				if f.Cause != c.cause || f.Transient != c.passes || !strings.Contains(f.Hint, c.hint) {
					t.Errorf("got %s, passes %v, hint %q; want %s, %v, %q\n%s", f.Cause, f.Transient, f.Hint, c.cause, c.passes, c.hint, text)
				}
				if summary := f.Error(); summary == "plan: " || strings.ContainsAny(summary, "\n│╷╵") {
					t.Errorf("summary %q", summary)
				}
			})
		}
	}
}

// TestSymptomsOfClouds: what five clouds answer through their providers is told
// apart, each cause by what more than one of them says.
func TestSymptomsOfClouds(t *testing.T) {
	t.Parallel()
	seen := corpus(t, "clouds")
	for _, cause := range []holdfast.Reason{
		"Credentials", "Permission", "Quota", "Throttled", "NotFound", "Conflict", "Network", "ResourceTimeout",
		"InvalidConfiguration", "StateLocked", "ServiceUnavailable",
	} {
		if seen[string(cause)] < 2 {
			t.Errorf("%s: %d examples", cause, seen[string(cause)])
		}
	}
}

// TestSymptomsOfRetries: what a library says of its own tries does not hide what
// failed.
func TestSymptomsOfRetries(t *testing.T) {
	t.Parallel()
	seen := corpus(t, "retries")
	for _, cause := range []holdfast.Reason{"Quota", "Throttled", "Network", "ServiceUnavailable", "StateBackend", "ResourceTimeout", "Permission"} {
		if seen[string(cause)] < 2 {
			t.Errorf("%s: %d examples", cause, seen[string(cause)])
		}
	}
}

// TestSymptomsOfLibraries: what protocols and the clients of clouds write gets its cause
// by its code, whatever the words next to that are.
func TestSymptomsOfLibraries(t *testing.T) {
	t.Parallel()
	seen := corpus(t, "libraries")
	for _, cause := range []holdfast.Reason{"ServiceUnavailable", "Network", "Credentials", "Conflict", "Quota", "Throttled", "Permission"} {
		if seen[string(cause)] < 2 {
			t.Errorf("%s: %d examples", cause, seen[string(cause)])
		}
	}
}

// corpus tries a file of testdata/said, and returns how often it has each cause.
func corpus(t *testing.T, name string) map[string]int {
	t.Helper()
	data, err := os.ReadFile("testdata/said/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for i, block := range strings.Split(string(data), "\n== ")[1:] {
		head, text, _ := strings.Cut(block, "\n")
		what, source, ok := strings.Cut(head, " · ")
		cause, passes, _ := strings.Cut(what, " ")
		if !ok || passes != "" && passes != "passes" || !strings.Contains(source, "#") {
			t.Fatalf("block %q", head)
		}
		seen[cause]++
		t.Run(fmt.Sprintf("%d %s", i, head), func(t *testing.T) {
			t.Parallel()
			f := failure.OfEngine("plan", "\n"+text, failed)
			if string(f.Cause) != cause || f.Transient != (passes != "") || f.Hint == "" {
				t.Fatalf("got %+v", f)
			}
			if len(f.Diagnostics) != 1 || strings.Contains(text, "\n  with ") != (f.Address != "") {
				t.Errorf("at %q: %+v", f.Address, f.Diagnostics)
			}
		})
	}
	return seen
}
