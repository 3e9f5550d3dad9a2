package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeport"
	"github.com/holdfast-dev/holdfast/internal/testenv/kubeserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
)

const (
	jobsAlone  = 10 // runs that are queued one after the other
	jobsAtOnce = 50 // runs that are queued at once
	jobsSpace  = "runs"
)

// jobs measures how long it takes from a run that is queued to its Job, and to the Pod that the
// Job's controller makes, against a real API server. There is no kubelet: what a node needs to
// start a Pod is not ours.
func (b *bench) jobs(s *stage) {
	tools := os.Getenv("HOLDFAST_TEST_PROVIDERS")
	if err := haveKubernetes(tools); err != nil {
		s.Fatal(err)
	}
	s.check(os.Mkdir(filepath.Join(s.dir, "kubernetes"), 0o755))
	api, err := kubeserver.Start(filepath.Join(s.dir, "kubernetes"), tools)
	s.check(err)
	s.Cleanup(api.Close)
	k := newJobsWorld(s, api)
	k.start()
	var jobs, pods []time.Duration
	for i := range jobsAlone {
		seen := k.begun(fmt.Sprintf("alone-%02d", i), 1)
		jobs, pods = append(jobs, seen.job), append(pods, seen.pod)
	}
	all := k.begun("burst", jobsAtOnce)
	fmt.Fprintf(b.log, "Job %s, Pod %s after its run was queued; %d of them %s, %s\n",
		ms(median(jobs)), ms(median(pods)), jobsAtOnce, ms(all.job), ms(all.pod))
	s.add(
		figure{Name: "run queued to its Job", N: 1, Value: median(jobs).Seconds(), Unit: "s"},
		figure{Name: "run queued to its Pod", N: 1, Value: median(pods).Seconds(), Unit: "s"},
		figure{Name: "run queued to its Job", N: jobsAtOnce, Value: all.job.Seconds(), Unit: "s"},
		figure{Name: "run queued to its Pod", N: jobsAtOnce, Value: all.pod.Seconds(), Unit: "s"},
	)
	k.stop()
}

// haveKubernetes says which programs are missing.
func haveKubernetes(tools string) error {
	var missing []string
	for _, name := range []string{"kube-apiserver", "kube-controller-manager"} {
		if _, err := os.Stat(filepath.Join(tools, name)); tools == "" || err != nil {
			missing = append(missing, name)
		}
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		missing = append(missing, "etcd (of the package etcd-server)")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("missing: %s; `make test-kubernetes` builds the first two into bin/tools", strings.Join(missing, ", "))
}

// jobsWorld is a server whose runs are Jobs.
type jobsWorld struct {
	*world
	client *http.Client
	server string // the API server

	mu   sync.Mutex
	jobs map[string]time.Time // when the Job of each run was seen
	pods map[string]time.Time // and its Pod
}

func newJobsWorld(s *stage, api *kubeserver.Server) *jobsWorld {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(api.CA)
	k := &jobsWorld{
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}},
		server: api.URL, jobs: make(map[string]time.Time), pods: make(map[string]time.Time),
	}
	agents := fmt.Sprintf("127.0.0.1:%d", freeport.Of(s))
	k.world = s.newWorldWith(`
agent: {off: true}
engines: {download: false}
runs: {max: 1000}
isolation: none
secrets: {east: {file: east}}
`, "clusters/**/*.yaml", "")
	s.write(k.path("east"), kubeserver.AdminToken, 0o600)
	config, err := os.ReadFile(k.path("holdfast.yaml"))
	s.check(err)
	config = bytes.Replace(config, []byte("  grace: 1s\n"), []byte(fmt.Sprintf("  grace: 1s\n  agents: {address: %[1]q, url: \"http://%[1]s\"}\n", agents)), 1)
	config = bytes.Replace(config, []byte("webhookSecret: {file: secret}}"), []byte(`webhookSecret: {file: secret}, allow: [
      {kinds: [Cluster], paths: ["clusters/**"]}, {kinds: [Runner, RunnerRule], paths: ["runners/**"], runners: ["*"]}]}`), 1)
	s.write(k.path("holdfast.yaml"), string(config), 0o600)
	k.create("/api/v1/namespaces", `{"metadata":{"name":"`+jobsSpace+`"}}`)
	for _, account := range []string{"holdfast-plan", "holdfast-apply"} {
		k.create("/api/v1/namespaces/"+jobsSpace+"/serviceaccounts", `{"metadata":{"name":"`+account+`"}}`)
	}
	files := fleetFiles(nil)
	files["runners/east.yaml"] = fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Runner
metadata: {name: east}
spec:
  type: kubernetes
  kubernetes:
    server:
      url: %s
      certificateAuthority: |
        %s
      token: {secret: east}
  job: {namespace: %s, image: "holdfast:none", planServiceAccount: holdfast-plan, applyServiceAccount: holdfast-apply}
---
apiVersion: holdfast.dev/v1
kind: RunnerRule
metadata: {name: all}
spec: {runner: east}
`, api.URL, strings.ReplaceAll(strings.TrimSpace(string(api.CA)), "\n", "\n        "), jobsSpace)
	k.git.Commit("main", "A runner", files)
	go k.watch("/apis/batch/v1/namespaces/"+jobsSpace+"/jobs", k.jobs)
	go k.watch("/api/v1/namespaces/"+jobsSpace+"/pods", k.pods)
	return k
}

func (k *jobsWorld) request(method, path, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(k.ctx, method, k.server+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+kubeserver.AdminToken)
	req.Header.Set("Content-Type", "application/json")
	return k.client.Do(req)
}

// create makes an object.
func (k *jobsWorld) create(path, object string) {
	res, err := k.request(http.MethodPost, path, object)
	k.check(err)
	text, err := io.ReadAll(res.Body)
	k.check(errors.Join(err, res.Body.Close()))
	if res.StatusCode != http.StatusCreated {
		k.Fatalf("create %s: %s: %.300s", path, res.Status, text)
	}
}

// watch notes when objects of runs appear, until the part ends.
func (k *jobsWorld) watch(path string, seen map[string]time.Time) {
	res, err := k.request(http.MethodGet, path+"?watch=1", "")
	if err != nil {
		return // the part waits in vain then
	}
	defer res.Body.Close()
	for events := json.NewDecoder(res.Body); ; {
		var event struct {
			Type   string
			Object struct {
				Metadata struct{ Labels map[string]string }
			}
		}
		if events.Decode(&event) != nil {
			return
		}
		at := time.Now()
		k.mu.Lock()
		if run := event.Object.Metadata.Labels["holdfast.dev/run"]; run != "" && seen[run].IsZero() {
			seen[run] = at
		}
		k.mu.Unlock()
	}
}

// appeared is how long it took until the last Job, and the last Pod, of runs was there.
type appeared struct{ job, pod time.Duration }

// begun pushes clusters, and waits for the Jobs of their first plans.
func (k *jobsWorld) begun(prefix string, clusters int) appeared {
	members := fleet(clusters)
	files := make(map[string]string, clusters)
	for i := range members {
		members[i].name = fmt.Sprintf("%s-%03d", prefix, i)
		files[members[i].path()] = members[i].document(0)
	}
	before := k.git.Rev("main")
	k.hub.Push("refs/heads/main", before, k.git.Commit("main", prefix, files))
	var queued map[string]time.Time
	k.until("all runs of "+prefix+" have a Pod", func() bool {
		queued = k.queued(prefix)
		k.mu.Lock()
		defer k.mu.Unlock()
		n := 0
		for run := range queued {
			if !k.jobs[run].IsZero() && !k.pods[run].IsZero() {
				n++
			}
		}
		time.Sleep(20 * time.Millisecond)
		return n == clusters
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	var all appeared
	var first, job, pod time.Time
	for run, at := range queued {
		if first.IsZero() || at.Before(first) {
			first = at
		}
		job, pod = later(job, k.jobs[run]), later(pod, k.pods[run])
	}
	all.job, all.pod = job.Sub(first), pod.Sub(first)
	return all
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// queued are the runs of clusters whose names begin so, and when they were queued.
func (k *jobsWorld) queued(prefix string) map[string]time.Time {
	token, err := os.ReadFile(k.path("data", "admin.token"))
	k.check(err)
	req, err := http.NewRequest(http.MethodGet, k.api+"/api/v1/runs?limit=200", nil)
	k.check(err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	res, err := ownclient.Client.Do(req)
	k.check(err)
	defer res.Body.Close()
	var list struct {
		Items []struct {
			ID, Cluster string
			CreatedAt   time.Time
		}
	}
	k.check(json.NewDecoder(res.Body).Decode(&list))
	runs := make(map[string]time.Time)
	for _, run := range list.Items {
		if strings.HasPrefix(run.Cluster, prefix) {
			runs[run.ID] = run.CreatedAt
		}
	}
	return runs
}
