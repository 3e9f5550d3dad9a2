package e2e_test

import (
	"crypto/sha1" //nolint:gosec // as Git names it
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// The template of these stories is a small kubernetes: a network, nodes with a
// control plane, and monitoring that can be switched off. Its clusters are in
// acme/infra, the template itself in acme/templates.

// blueprint is a release of the template.
type blueprint struct {
	version   string
	nodes     string   // a word in the nodes' module: a new one is another file, and nothing else
	replaces  string   // a new one replaces the control plane where high_availability is true
	watch     string   // what the monitoring is
	maxNodes  int      // default 9
	schema    []string // more variables
	moreRules []string
}

var oneFourTwo = blueprint{version: "1.4.2", nodes: "first", replaces: "v1", watch: "graphs"}

func (b blueprint) files() files {
	if b.maxNodes == 0 {
		b.maxNodes = 9
	}
	more := ""
	for _, line := range b.schema {
		more += "      " + line + "\n"
	}
	rules := ""
	for _, line := range b.moreRules {
		rules += "    " + line + "\n"
	}
	return files{
		"kubernetes/template.yaml": `apiVersion: holdfast.dev/v1
kind: Template
metadata:
  name: kubernetes
  version: ` + b.version + `
spec:
  providers:
    demo:
      regions: [eu-1, eu-2, us-1]
      modules:
        - name: network
          source: ./modules/network
          inputs: {cidr: "${var.cidr}"}
        - name: nodes
          source: ./modules/nodes
          inputs:
            node_count: "${var.node_count}"
            high_availability: "${var.high_availability}"
            network_id: "${module.network.id}"
        - name: monitoring
          source: ./modules/monitoring
          when: self.enable_monitoring
          inputs: {endpoint: "${module.nodes.endpoint}"}
  variables:
    type: object
    required: [node_count]
    additionalProperties: false
    properties:
      node_count: {type: integer, minimum: 1, maximum: ` + itoa(b.maxNodes) + `}
      cidr: {type: string, default: 10.0.0.0/16}
      high_availability: {type: boolean, default: false}
      enable_monitoring: {type: boolean, default: false}
      tier: {type: string, enum: [small, medium, large], default: small}
` + more + `  rules:
    - rule: "!self.high_availability || self.node_count >= 3"
      message: node_count must be at least 3 when high_availability is true
      path: node_count
` + rules + `  outputs:
    endpoint: {value: "${module.nodes.endpoint}", means: endpoint}
    node_count: {value: "${module.nodes.node_count}", means: nodeCount}
`,
		"kubernetes/modules/network/main.tf": `variable "cidr" {
  type = string
}

resource "terraform_data" "network" {
  input = var.cidr
}

output "id" {
  value = "net-${terraform_data.network.output}"
}
`,
		"kubernetes/modules/nodes/main.tf": `# ` + b.nodes + `
variable "node_count" {
  type = number
}

variable "high_availability" {
  type = bool
}

variable "network_id" {
  type = string
}

resource "terraform_data" "control_plane" {
  input            = var.network_id
  triggers_replace = var.high_availability ? "` + b.replaces + `" : "one"
}

resource "terraform_data" "node" {
  count = var.node_count
  input = count.index
}

output "endpoint" {
  value = "https://${replace(terraform_data.control_plane.output, "/", "-")}.example.test:6443"
}

output "node_count" {
  value = length(terraform_data.node)
}
`,
		"kubernetes/modules/monitoring/main.tf": `variable "endpoint" {
  type = string
}

resource "terraform_data" "monitoring" {
  input = "` + b.watch + `"
}
`,
	}
}

// on is a cluster on a version of the template, with its variables as in YAML.
func on(name, version, variables string, spec ...string) files {
	template := fmt.Sprintf("template: {name: kubernetes, version: %s}", version)
	return document(name, append([]string{template, "provider: demo", "region: eu-1", "variables: {" + variables + "}"}, spec...)...)
}

// upgrading is on with the versions that it may be upgraded to.
func upgrading(name, version, allowed, variables string) files {
	f := on(name, version, variables)
	for path, text := range f {
		f[path] = strings.Replace(text, "version: "+version, fmt.Sprintf("version: %s, upgrades: %q", version, allowed), 1)
	}
	return f
}

// newBlueprints is a world with acme/infra, which is its fleet, and acme/templates,
// where the template is released as 1.4.2.
func newBlueprints(t testing.TB, more settings) (w *world, infra, blueprints *repo) {
	t.Helper()
	w = emptyWorld(t, nil)
	infra = w.addRepo("acme/infra", more)
	blueprints = w.addRepo("acme/templates", settings{"templates": map[string]string{"kubernetes": "kubernetes"}})
	for _, r := range w.repos {
		r.hub.ServeGit(r.git.Path)
	}
	blueprints.commit(oneFourTwo.files())
	blueprints.release("1.4.2")
	return w, infra, blueprints
}

// release tags the tracked branch as a version of the template, and tells nobody.
func (r *repo) release(version string) string {
	r.w.t.Helper()
	sha := r.git.Rev("main")
	r.git.Tag("kubernetes/v"+version, sha)
	return sha
}

// releases is release, and GitHub delivers it.
func (r *repo) releases(version string) string {
	r.w.t.Helper()
	sha := r.release(version)
	r.hub.Push("refs/tags/kubernetes/v"+version, "", sha)
	return sha
}

// moves moves a version's tag to another commit, which GitHub delivers.
func (r *repo) moves(version, to string) {
	r.w.t.Helper()
	before := r.git.Rev("kubernetes/v" + version)
	r.git.Tag("kubernetes/v"+version, to)
	r.hub.Push("refs/tags/kubernetes/v"+version, before, to)
}

// untilReleased waits until the server knows of a version, and of none that is
// newer.
func (w *world) untilReleased(version string) {
	w.t.Helper()
	w.until("version "+version+" is known", func() (bool, string) {
		table := w.do("get templates")
		return strings.HasPrefix(line(table, "kubernetes"), "kubernetes "+version+" "), table
	})
}

// proposals are the pull requests of ours in a repository, by number.
func (r *repo) proposals() []githubserver.Pull {
	return slices.DeleteFunc(r.hub.PullRequests(), func(p githubserver.Pull) bool { return p.Author != r.w.robot })
}

// state is what became of a pull request: open, closed or merged.
func (r *repo) state(p *pull) string {
	for _, is := range r.hub.PullRequests() {
		if is.Number == p.number {
			return is.State
		}
	}
	return ""
}

// untilProposed waits until there are so many pull requests of ours, open or not,
// and the last of them is in that state and says all of that in title or body.
func (r *repo) untilProposed(count int, state string, says ...string) *pull {
	r.w.t.Helper()
	var last githubserver.Pull
	r.w.until(fmt.Sprintf("%s has %d proposals, the last one %s, saying %q", r.name, count, state, says), func() (bool, string) {
		all := r.proposals()
		if len(all) != count {
			return false, fmt.Sprintf("%d proposals: %+v", len(all), all)
		}
		last = all[count-1]
		missing := slices.ContainsFunc(says, func(words string) bool { return !strings.Contains(last.Title+"\n"+last.Body, words) })
		return last.State == state && !missing, fmt.Sprintf("%+v", last)
	})
	return r.pullOf(last)
}

// pullOf is a pull request that was opened through the API.
func (r *repo) pullOf(from githubserver.Pull) *pull {
	r.w.t.Helper()
	for _, p := range r.pulls {
		if p.number == from.Number {
			p.head = from.Head
			return p
		}
	}
	p := &pull{r: r, number: from.Number, branch: from.Branch, head: from.Head, closed: from.State != "open"}
	r.pulls = append(r.pulls, p)
	return p
}

// diff are the lines that a pull request changes: "-old", "+new", in order.
func (p *pull) diff() []string {
	p.r.w.t.Helper()
	base := p.r.git.Git("merge-base", "main", p.head)
	var lines []string
	for line := range strings.Lines(p.r.git.Git("diff", "--unified=0", "--no-color", base, p.head)) {
		if changedLine.MatchString(line) {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

// expectFile checks a file of a pull request's head, byte by byte.
func (p *pull) expectFile(path, want string) {
	p.r.w.t.Helper()
	id := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(want), want)) //nolint:gosec // as Git names it
	if got := p.r.git.Git("rev-parse", p.head+":"+path); got != hex.EncodeToString(id[:]) {
		p.r.w.t.Errorf("%s is not what it should be, but\n%s\nwant\n%s", path, p.r.git.Git("cat-file", "blob", got), want)
	}
}

var changedLine = regexp.MustCompile(`^(-[^-]|\+[^+])`)

// kinds counts a cluster's runs by kind, as "plan:1 apply:1".
func (w *world) kinds(cluster string) map[holdfast.RunKind]int {
	w.t.Helper()
	out := make(map[holdfast.RunKind]int)
	for _, run := range w.runs(cluster) {
		out[run.Kind]++
	}
	return out
}
