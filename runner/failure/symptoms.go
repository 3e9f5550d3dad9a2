package failure

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Symptom is a pattern in what an engine says, and what it means.
type Symptom struct {
	pattern   *Expression
	Cause     holdfast.Reason
	Transient bool
	Hint      string
}

// Hints that several symptoms share.
const (
	hintCredentials = "check that the credentials for this project, environment and phase exist and have not expired"
	hintPermission  = "give the credentials that are bound to this project, environment and phase the permission that the message names; plans and applies may have different ones"
	hintNetwork     = "check that the agent's machine can reach the host that the message names: name resolution, proxy, firewall"
	HintDisk        = "free space on the disk that the agent's folder is on, or give it a larger one; runs are resumed automatically then"
	HintMemory      = "give the agent's machine or container more memory, or let it execute fewer runs at once"
	hintKubernetes  = "no configuration of a Kubernetes cluster is found: bind KUBE_CONFIG_PATH, a file that the agent can read (see sandbox.paths), to this project, environment and phase; KUBE_HOST and KUBE_TOKEN alone are not enough for a state backend"
	hintProvider    = "the provider has crashed: the log has its stack trace; pin another version of it and report it to its maintainers"
)

// providerDied is what engines say of a provider whose process ended before it had
// answered a call: the outcome of a creation is unknown.
var providerDied = lazily(`(?i)plugin did not respond|plugin\.\(\*GRPCProvider\)\S* request was cancell?ed|plugin\S* crashed!|failed to respond to the plugin|unrecognized remote plugin message|failed to read any lines from plugin|failed to (instantiate|launch) provider|transport is closing|error reading from server: EOF|panic: runtime error`)

// What is before the codes with which services answer: the status of HTTP in the words
// of their clients, and the code of gRPC.
const (
	answered = `((status|code|http|error|response)\D{0,12}|\[|https?://\S+: |\bgot )`
	rpc      = `rpc error: code = `
)

// symptoms in the order in which they are looked for in one error: the first
// that fits counts, so the more telling ones come first. They are matched against
// the summary, a space and the detail, with every run of white space as one space.
var symptoms = []Symptom{ //nolint:gochecknoglobals // a constant table
	{lazily(`(?i)saved plan is stale`), holdfast.CauseStalePlan, false, "look at the new plan and apply that"},
	// The text of a condition is the author's, and may say anything.
	{
		lazily(`^(Resource (pre|post)condition failed|Module output value precondition failed|Check block assertion failed|Invalid value for variable|Test assertion failed)\b`),
		holdfast.CauseInvalidConfiguration, false, "a condition in the code is not met: the code defines the message",
	},
	{
		lazily(`(?i)(state|workspace)( blob)? is already locked|remote state already locked|state is already locked by another|(acquiring|locking) the state.*(lock info:|ConditionalCheckFailed|PreconditionFailed|conditionNotMet|LeaseAlreadyPresent|resource temporarily unavailable)`),
		holdfast.CauseStateLocked, true, "somebody else works on this state: wait for them; if nobody does, `holdfast unlock` shows the lock and releases one in Holdfast's own backend, `holdfast unlock --lock` one in another; a lock in PostgreSQL ends with its session",
	},
	{
		lazily(`(?i)no space left on device|disk quota exceeded|not enough space on the disk`),
		holdfast.CauseDiskFull, true, HintDisk,
	},
	{
		lazily(`(?i)cannot allocate memory|\bout of memory\b|\bOOMKilled\b|signal: killed`),
		holdfast.CauseOutOfMemory, true, HintMemory,
	},
	{
		lazily(`(?i)timeout while waiting for plugin to start`),
		holdfast.CauseProviderCrashed, true, "the agent's machine is overloaded: let it execute fewer runs at once, or give it more",
	},
	{
		providerDied,
		holdfast.CauseProviderCrashed, true, "the provider's process died without an error message: " + HintMemory,
	},
	{
		lazily(`(?i)checksums (previously )?recorded in the (dependency )?lock file|inconsistent dependency lock file|locked provider .* does not match configured version`),
		holdfast.CauseInvalidConfiguration, false, "the provider lock file does not fit: run `init -upgrade`, or `providers lock -platform=` for the agent's platform, and commit .terraform.lock.hcl",
	},
	{
		lazily(`(?i)unsupported (terraform|opentofu) core version|version constraint.*(core|terraform) version`),
		holdfast.CauseInvalidConfiguration, false, "change engine.version in the cluster's document, or required_version in the code",
	},
	{
		lazily(`(?i)(open|mkdir|stat|lstat|rename|remove|fork/exec|chmod|read|write|unlinkat) \S+: (permission denied|operation not permitted)`),
		holdfast.CausePermission, false, "the engine runs as the agent's user, who has no right to this file; code must stay inside of its own folder",
	},
	{
		lazily(`(?i)\bthrottl(ing|ed)(Exception)?\b|rate exceeded|too ?many ?requests|RequestLimitExceeded|SlowDown\b|rateLimitExceeded|\brate.?limit|insufficient tokens for quota|quota exceeded for quota (group|metric).* per |` + answered + `429\b`),
		holdfast.CauseThrottled, true, "usually transient and retried automatically; if it persists, run fewer clusters of this account at once, or ask for a higher rate",
	},
	{
		lazily(`(?i)etcdserver: |currently unable to handle the request|cannot complete the requested operation at this time|unable to return a response in the time allotted|resource quota evaluates timeout|did not complete within (the )?allowed duration`),
		holdfast.CauseServiceUnavailable, true, "the cluster's own API server is overloaded or restarts: usually transient and retried automatically",
	},
	{ // PostgreSQL, which starts, stops or is full
		lazily(`(?i)the database system is (starting up|shutting down|in recovery mode|not (yet )?accepting connections)|terminating connection (due to|because of)|too many clients already|remaining connection slots are reserved`),
		holdfast.CauseServiceUnavailable, true, "the database starts, stops, or has too many connections: usually transient and retried automatically",
	},
	{
		lazily(`(?i)requires a quota project`),
		holdfast.CauseCredentials, false, "set user_project_override and billing_project for the provider, or use a service account",
	},
	{
		lazily(`(?i)\bquotas?\b|limit[ _]?exceeded|VcpuLimit|` + rpc + `ResourceExhausted\b|QuotaFailure|maximum number of .*(reached|exceeded)|(account|resource|cluster|node|droplet|instance|server|volume|load ?balancer) limit (has been )?(reached|exceeded)|exceed your \w+ limit|nodes exceed limits|exceed(s|ed|ing)? (the |your |its |approved )*(maximum|limit)`),
		holdfast.CauseQuota, false, "raise the quota in the cloud, or request less",
	},
	{
		lazily(`(?i)Insufficient(Instance|Host|Reserved\w*)?Capacity|ZONE_RESOURCE_POOL_EXHAUSTED|SkuNotAvailable|OverconstrainedAllocation|AllocationFailed|\((resource_unavailable|placement_error|no_space_left_in_location)[,)]|does not have enough resources available`),
		holdfast.CauseQuota, false, "the cloud has no room for this now: choose another zone or size, or try again later",
	},
	{ // without a configuration Kubernetes' client asks localhost
		lazily(`(?i)no configuration has been provided, try setting KUBERNETES_MASTER|"http://localhost(:80)?/(api|apis|version)[/?"]`),
		holdfast.CauseCredentials, false, hintKubernetes,
	},
	{
		lazily(`(?i)no valid credential|ExpiredToken|InvalidClientTokenId|UnrecognizedClient|InvalidAccessKeyId|SignatureDoesNotMatch|AuthFailure|could not find default credentials|ACCESS_TOKEN_SCOPE_INSUFFICIENT|invalid_(grant|client)|AADSTS\d+|authentication required|asked for the client to provide credentials|remote error: tls: (\w+ certificate|certificate required)|unable to authenticate you|(requires|invalid) auth\b|(credentials?|token) (are|is|has) (invalid|expired|missing)|could not read Username|Permission denied \(publickey|Host key verification failed`),
		holdfast.CauseCredentials, false, hintCredentials,
	},
	{
		lazily(`(?i)accessNotConfigured|SERVICE_DISABLED|API (has not been used in project|is not enabled for this project)|not registered to use namespace|MissingSubscriptionRegistration|OptInRequired`),
		holdfast.CausePermission, false, "the account does not use this service yet: enable the API, or register the resource provider, that the message names",
	},
	{
		lazily(`(?i)AccessDenied|UnauthorizedOperation|AuthorizationFailed|not authorized to (perform|use)|does not have (the )?(required |necessary )?(permission|authorization)|PERMISSION_?DENIED|\(token_readonly[,)]|permission '?\S+'? denied|insufficient (permission|privilege)|LinkedAuthorizationFailed|RequestDisallowedByPolicy|explicit deny|permission denied for (schema|table|sequence|relation|database)`),
		holdfast.CausePermission, false, hintPermission,
	},
	{
		lazily(`(?i)\bunauthori[sz]ed\b|` + answered + `401\b`),
		holdfast.CauseCredentials, false, hintCredentials,
	},
	{
		lazily(`(?i)\bforbidden\b|` + answered + `403\b`),
		holdfast.CausePermission, false, hintPermission,
	},
	{
		lazily(`(?i)x509: |certificate (signed by unknown authority|verify failed|has expired)|server certificate verification failed|SSL certificate problem|no alternative certificate subject name`),
		holdfast.CauseNetwork, false, "the agent does not trust the host's certificate: put its authority into the machine's store, or set SSL_CERT_FILE, and GIT_SSL_CAINFO for Git",
	},
	{ // such as the page of a proxy in between
		lazily(`(?i)invalid response content from|response has \w* ?Content-Type|\b(mirror|registry)\b.*looking for beginning of value`),
		holdfast.CauseServiceUnavailable, true, "the mirror or registry returned something unexpected: check the address in the message",
	},
	{
		lazily(`(?i)service( is)?( currently| temporarily)? ?unavailable|` + rpc + `(Unavailable|Internal)\b|\((unavailable|robot_unavailable|service_error|server_error|bad_gateway|timeout|maintenance)[,)]|bad gateway|gateway time-?out|internal ?server ?error|\bInternal(Error|Failure|ServiceError)(Exception)?\b|unexpected end of JSON input|backendError|Request ?Timeout\b|ServerError\b|` + answered + `(408|50[0-4])\b`),
		holdfast.CauseServiceUnavailable, true, "usually transient and retried automatically; if it persists, look at the service's own status page",
	},
	{
		lazily(`(?i)connection (refused|reset|timed out)|no such host|i/o timeout|TLS handshake timeout|network is unreachable|no route to host|temporary failure in name resolution|unexpected EOF|server misbehaving|broken pipe|Client\.Timeout|giving up after \d+ attempt|request failed after \d+ attempt|(could not|couldn't|failed to) connect to|could not resolve host|request send failed|\bhttp2: (server|client conn|Transport|stream|timeout)|stream error: stream ID \d+|RST_STREAM|net/http: (request canceled|timeout)|server closed idle connection|transport connection broken|use of closed network connection|remote error: tls: (internal error|unexpected message|bad record MAC|record overflow|error \w+ message|user canceled)|transport: per-RPC creds failed|driver: bad connection|gnutls_handshake\(\) failed|GnuTLS (recv|send) error|OpenSSL SSL_\w+:|the remote end hung up unexpectedly|early EOF|(^|: )EOF\b`),
		holdfast.CauseNetwork, true, hintNetwork,
	},
	{ // unless it was out of reach
		lazily(`(?i)` + rpc + `Unauthenticated\b|invalid authentication credentials|authentication failed|unable to (authenticate|build authorizer)|Authenticat(ion|ing) (error|using)`),
		holdfast.CauseCredentials, false, hintCredentials,
	},
	{
		lazily(`(?i)timeout while waiting for|timed? ?out( while)? waiting|\bwait(ing)? .*timed? ?out|operation timed out|(context )?deadline ?exceeded|exceed context deadline|exceeded timeout|timeout of .* (exceeded|reached)|exceeded (max wait time for|wait attempts)`),
		holdfast.CauseResourceTimeout, true, "look at the resource in the cloud: if it only needs longer, raise its `timeouts` in the code",
	},
	{
		lazily(`^((Error: )?(Invalid|Unsupported|Missing|Duplicate|Inconsistent|Unreadable|Incorrect|Insufficient|Extra|Undeclared|Unclosed|Unterminated|Unexpected|Self-referential|Ambiguous|Circular|Conflicting configuration|Incompatible|Argument|Attribute|Unsuitable|Variables? not allowed|Function calls|Reference to|Module (not|version)|No value for|Value for undeclared|Cycle|Error in function call|Call to unknown function|Provider configuration not present|Failed to query available provider packages|Failed to read (file|variables file)|Instance cannot be destroyed|Backend configuration|Get(ting)? provider schema))\b`),
		holdfast.CauseInvalidConfiguration, false, "correct the code or the cluster's document where the message says",
	},
	{
		lazily(`(?i)another (operation|update|request) |` + rpc + `Aborted\b|\((locked|conflict)[,)]|operation .* in progress|operation \S+ is currently|currently being (created|deleted|updated|repaired)|\bLinode busy|(Operation|Update)InProgress|Concurrent(Modification|Update)|OperationAborted|object has been modified|conflicting (conditional )?operation|ResourceNotReady|optimistic lock`),
		holdfast.CauseConflict, true, "something else is changing it at the moment: usually transient and retried automatically",
	},
	{
		lazily(`(?i)already ?(exists|owned|been taken)|AlreadyExists|uniqueness_error|Duplicate(Entry|Name|Resource)|name is (taken|not available)`),
		holdfast.CauseConflict, false, "it exists but is not in the state: import it, give the new one another name, or remove the old one",
	},
	{
		lazily(`(?i)DependencyViolation|ResourceInUse|DeleteConflict|` + rpc + `FailedPrecondition\b|is (still )?(in use|being used)|has (children|dependen)|IncorrectState|Invalid\w*State(Exception)?\b|` + answered + `(409|412)\b|\b409 Conflict|deletion protection`),
		holdfast.CauseConflict, false, "the cloud refuses this in the current state of the resource: remove what still uses it, or wait until its current change has finished",
	},
	{
		lazily(`(?i)NotFound(Exception|Fault)?\b|NoSuch(Bucket|Entity|Key|HostedZone|Resource)|could(n't| not) (be found|find)|was not found|does not exist|no matching .* found|query returned no results|repository ('[^']*' )?not found|pathspec '[^']*' did not match|remote branch \S+ not found|` + answered + `404\b`),
		holdfast.CauseNotFound, false, "create what the message names, or correct its name, region or account in the code",
	},
	{
		lazily(`(?i)\b(invalid|unsupported|undeclared|missing|malformed|ValidationException|InvalidParameter\w*|InvalidArgument|BadRequest)\b|not been declared|is required|does not match configured version constraint|` + answered + `4(00|22)\b`),
		holdfast.CauseInvalidConfiguration, false, "correct the code or the cluster's document where the message says",
	},
}

// retries finds what clouds' libraries say of their own tries around what failed:
// how many there were, and that no more of them are allowed.
var retries = lazily(`(?i)(exceeded (the )?max(imum)?( number of)? (retry )?(attempts|retries)|max(imum)?( number of)? (retry )?(attempts|retries|tries)( \(\d+\))?( has been| have been| was| were)? (exceeded|reached|exhausted)|(the )?number of (attempts|retries|tries)( has been)? exceeded( the (limit|maximum))?|retry limit exceeded)(, (max )?\d+)?,?:?` +
	`|(failed to get rate limit token, )?retry quota exceeded, \d+ available, \d+ requested` +
	`|giving up after \d+ attempts?(\(s\))?:?|retry failed with [^;]*; last error:|client rate limiter wait returned an error:`)

// gaveUp is the symptom of a library that gave up and does not say what failed: it
// tries again only what may be transient.
var gaveUp = Symptom{nil, holdfast.CauseServiceUnavailable, true, "the provider has tried again until it gave up: usually transient and retried automatically; if it persists, look at the service's own status page"} //nolint:gochecknoglobals // a constant

// stateBackend finds errors of where the state is, except for a lock that somebody
// holds: what is wrong there is reported by the other symptoms.
var stateBackend = lazily(`(?i)^(error )*(acquiring|releasing|locking|unlocking|loading|refreshing|reading|inspecting|saving|persisting|migrating)( the)?( remote)? states?\b|` +
	`^failed to get existing workspaces\b|^failed to (load|save|persist|read|refresh|upload|download)( the)?( remote)?( state| workspaces)?\b.*\b(state|workspace|bucket|backend)|` +
	`state data in \S+ does not have the expected content|error configuring the backend|failed to (get|upload|lock|unlock)( the)? state|S3 bucket \S+ does not exist|unsupported state file format|remote state endpoint`)

// Diagnose returns what one error of an engine means; the zero cause if it is unknown.
func Diagnose(text string) Symptom {
	text = unwrapped(text)
	inner := strings.TrimSpace(retries.ReplaceAllString(text, ""))
	found := Symptom{Cause: holdfast.CauseEngineFailed, Hint: hintUnknown}
	if inner != text {
		found = gaveUp
	}
	for _, s := range symptoms {
		if s.pattern.MatchString(inner) {
			found = s
			break
		}
	}
	if !stateBackend.MatchString(text) {
		return found
	}
	switch found.Cause {
	case holdfast.CauseStateLocked, holdfast.CauseStalePlan, holdfast.CauseDiskFull, holdfast.CauseOutOfMemory:
		return found
	case holdfast.CauseThrottled, holdfast.CauseServiceUnavailable, holdfast.CauseNetwork, holdfast.CauseResourceTimeout:
		found.Hint = "the state's backend could not be reached: " + hintNetwork
	case holdfast.CauseCredentials, holdfast.CausePermission:
		found.Hint = "the state's backend refused access: " + found.Hint
	default:
		found.Transient = false
		found.Hint = "check the state's backend: it must exist and contain what an engine wrote last"
	}
	found.Cause = holdfast.CauseStateBackend
	return found
}

const hintUnknown = "read the engine's message; the log has the full output"

// deciding returns the index of the error that says whether it makes sense to try
// again, and what it means: the first that is not transient, otherwise the first.
func deciding(errs []holdfast.Diagnostic) (int, Symptom) {
	var first Symptom
	for i, d := range errs {
		s := Diagnose(d.Summary + " " + d.Detail)
		if i == 0 {
			first = s
		}
		if !s.Transient {
			return i, s
		}
	}
	return 0, first
}

// unwrapped is a text on one line: engines wrap their messages.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// answered are the addresses at which a provider has reported an error itself.
func (e *Error) answered() map[string]bool {
	at := map[string]bool{}
	for _, d := range e.Diagnostics {
		if d.Severity == "error" && d.Address != "" {
			at[d.Address] = at[d.Address] || !providerDied.MatchString(unwrapped(d.Summary+" "+d.Detail))
		}
	}
	return at
}

// WithoutAnswer returns the addresses, of those that the engine was at when it failed, of
// which no provider has reported an error. Nil: no provider died.
func (e *Error) WithoutAnswer(begun []string) []string {
	if !e.Unanswered {
		return nil
	}
	answered := e.answered()
	return slices.DeleteFunc(slices.Clone(begun), func(address string) bool { return answered[address] })
}
