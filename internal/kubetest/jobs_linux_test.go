package kubetest_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/kubeserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/kubernetes"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// yard is a runner's namespace with a Cluster that watches it.
type yard struct {
	t       *testing.T
	space   space
	cluster *kubernetes.Cluster
}

// open opens a Cluster with an image of the stand-in, and watches it.
func open(t *testing.T, s space, image string, change ...func(*kubernetes.Options)) *yard {
	t.Helper()
	opts := kubernetes.Options{
		Runner: runnerspec.Runner{Name: "east", Type: runnerspec.Kubernetes, Job: &runnerspec.Job{
			Namespace: s.name, Image: "holdfast:" + image, PlanServiceAccount: "holdfast-plan", ApplyServiceAccount: "holdfast-apply",
		}},
		Access:       kubernetes.Access{Server: &kubernetes.Server{URL: api.URL, CA: api.CA, Token: s.token}},
		Agent:        kubernetes.Agent{ServerURL: "https://127.0.0.1:1", Grace: 2 * time.Second},
		Installation: "test",
	}
	for _, c := range change {
		c(&opts)
	}
	cluster, err := kubernetes.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cluster.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return &yard{t, s, cluster}
}

func launch(run string, change ...func(*protocol.Launch)) protocol.Launch {
	l := protocol.Launch{
		AttemptRef: holdfast.AttemptRef{Run: run, Attempt: 1, Fence: 7}, Runner: "east", Kind: holdfast.RunPlan,
		Cluster: holdfast.Cluster{Name: "prod-eu", Project: "payments", Environment: "production"},
		Ticket:  run + ".1.secret", Timeout: 10 * time.Minute,
	}
	for _, c := range change {
		c(&l)
	}
	return l
}

func (y *yard) start(l protocol.Launch) {
	y.t.Helper()
	if err := y.cluster.Start(y.t.Context(), l); err != nil {
		y.t.Fatal(err)
	}
}

// launched is what is said of an attempt now.
func (y *yard) launched(run string) (protocol.Launched, string) {
	list, err := y.cluster.Launched(y.t.Context())
	i := slices.IndexFunc(list, func(l protocol.Launched) bool { return l.Run == run })
	if i < 0 {
		return protocol.Launched{}, fmt.Sprintf("it is not listed: %v, %v", list, err)
	}
	return list[i], fmt.Sprintf("%+v", list[i])
}

func (y *yard) until(run, what string, is func(protocol.Launched) bool) protocol.Launched {
	y.t.Helper()
	var found protocol.Launched
	until(y.t, what, func() (bool, string) {
		var text string
		found, text = y.launched(run)
		return found.Run != "" && is(found), text
	})
	return found
}

func (y *yard) reason(run string, reason holdfast.Reason, words string) protocol.Launched {
	y.t.Helper()
	return y.until(run, string(reason), func(l protocol.Launched) bool { return l.Reason == reason && strings.Contains(l.Detail, words) })
}

// TestJobs is what becomes of a Job, for each of the ways in which one can go.
func TestJobs(t *testing.T) {
	startNode(t, "jobs")
	s := newSpace(t, "jobs")

	t.Run("it ends well", func(t *testing.T) {
		y := open(t, s, "ends")
		y.start(launch("run-ends"))
		y.start(launch("run-ends")) // it is ours already
		l := y.until("run-ends", "over", func(l protocol.Launched) bool { return l.Over && l.Dead })
		if l.Reason != "" || !l.Begun {
			t.Errorf("got %+v", l)
		}
	})
	t.Run("it fails", func(t *testing.T) {
		y := open(t, s, "fails")
		y.start(launch("run-fails"))
		y.reason("run-fails", holdfast.ReasonAgentKilled, "exit code 3")
	})
	t.Run("memory", func(t *testing.T) {
		y := open(t, s, "hogs")
		y.start(launch("run-hogs", func(l *protocol.Launch) { l.Limits.Memory = 1 << 20 }))
		if l := y.reason("run-hogs", holdfast.CauseOutOfMemory, "257Mi"); !l.Dead {
			t.Errorf("got %+v", l)
		}
	})
	t.Run("its deadline", func(t *testing.T) {
		y := open(t, s, "stays")
		y.start(launch("run-deadline", func(l *protocol.Launch) { l.Timeout = 2 * time.Second }))
		if l := y.reason("run-deadline", holdfast.CauseJobDeadline, "longer than"); !l.Dead {
			t.Errorf("got %+v", l)
		}
	})
	t.Run("eviction", func(t *testing.T) {
		y := open(t, s, "stays")
		y.start(launch("run-evicted"))
		y.until("run-evicted", "begun", func(l protocol.Launched) bool { return l.Begun })
		pod := podOf(t, s, "run-evicted")
		patch := []byte(`{"metadata":{"annotations":{"standin/evict":"The node was low on resource: memory."}}}`)
		if _, err := admin.CoreV1().Pods(s.name).Patch(t.Context(), pod, types.MergePatchType, patch, meta.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if l := y.reason("run-evicted", holdfast.CauseEvicted, "low on resource"); !l.Dead {
			t.Errorf("got %+v", l)
		}
	})
	t.Run("an image that is not there", func(t *testing.T) {
		y := open(t, s, "missing")
		y.start(launch("run-image"))
		if l := y.reason("run-image", holdfast.CauseImagePullFailed, "holdfast:missing"); l.Over || l.Begun {
			t.Errorf("got %+v", l)
		}
		if err := y.cluster.Stop(t.Context(), holdfast.AttemptRef{Run: "run-image", Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		y.until("run-image", "gone", func(l protocol.Launched) bool { return l.Over && !l.Dead })
		until(t, "Pod and Secret are gone", func() (bool, string) {
			pods, _ := admin.CoreV1().Pods(s.name).List(t.Context(), meta.ListOptions{LabelSelector: "holdfast.dev/run=run-image"})
			secrets, _ := admin.CoreV1().Secrets(s.name).List(t.Context(), meta.ListOptions{LabelSelector: "holdfast.dev/run=run-image"})
			return len(pods.Items)+len(secrets.Items) == 0, fmt.Sprint(len(pods.Items), len(secrets.Items))
		})
	})
	t.Run("no node fits", func(t *testing.T) {
		y := open(t, s, "ends", func(o *kubernetes.Options) { o.Runner.Job.NodeSelector = map[string]string{"disk": "fast"} })
		y.start(launch("run-nowhere"))
		y.reason("run-nowhere", holdfast.CauseUnschedulable, "node affinity/selector")
	})
	t.Run("a Pod is deleted", func(t *testing.T) {
		y := open(t, s, "stays")
		y.start(launch("run-deleted"))
		y.until("run-deleted", "begun", func(l protocol.Launched) bool { return l.Begun })
		if err := admin.CoreV1().Pods(s.name).Delete(t.Context(), podOf(t, s, "run-deleted"), meta.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		y.until("run-deleted", "dead and over", func(l protocol.Launched) bool { return l.Dead && l.Over })
	})
	t.Run("a secret is not in the environment", func(t *testing.T) {
		y := open(t, s, "stays")
		y.start(launch("run-secret"))
		y.until("run-secret", "begun", func(l protocol.Launched) bool { return l.Begun })
		pod, err := admin.CoreV1().Pods(s.name).Get(t.Context(), podOf(t, s, "run-secret"), meta.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(pod); strings.Contains(string(text), "run-secret.1.secret") {
			t.Error("the Pod shows the ticket")
		}
	})
}

func podOf(t *testing.T, s space, run string) string {
	t.Helper()
	list, err := admin.CoreV1().Pods(s.name).List(t.Context(), meta.ListOptions{LabelSelector: "holdfast.dev/run=" + run})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("Pods of %s: %d, %v", run, len(list.Items), err)
	}
	return list.Items[0].Name
}

// A Pod that is deleted by force on a node that is silent is gone, its Job has failed, and its
// process still runs: that is not taken for its end.
func TestForceDeletedOnASilentNode(t *testing.T) {
	n := startNode(t, "silent")
	s := newSpace(t, "silent")
	y := open(t, s, "ignores")
	y.start(launch("run-silent"))
	y.until("run-silent", "begun", func(l protocol.Launched) bool { return l.Begun })
	n.silence()
	none := int64(0)
	err := admin.CoreV1().Pods(s.name).Delete(t.Context(), podOf(t, s, "run-silent"), meta.DeleteOptions{GracePeriodSeconds: &none})
	if err != nil {
		t.Fatal(err)
	}
	l := y.until("run-silent", "over", func(l protocol.Launched) bool { return l.Over })
	if l.Dead || l.Reason != holdfast.CauseJobDeleted {
		t.Errorf("got %+v", l)
	}
}

// A quota on Pods shows in events alone, one on Jobs in the answer.
func TestQuota(t *testing.T) {
	startNode(t, "quota")
	s := newSpace(t, "quota")
	quota := func(name string, what core.ResourceName, most string) {
		_, err := admin.CoreV1().ResourceQuotas(s.name).Create(t.Context(), &core.ResourceQuota{
			ObjectMeta: meta.ObjectMeta{Name: name}, Spec: core.ResourceQuotaSpec{Hard: core.ResourceList{what: resource.MustParse(most)}},
		}, meta.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		until(t, "the quota is counted", func() (bool, string) {
			q, err := admin.CoreV1().ResourceQuotas(s.name).Get(t.Context(), name, meta.GetOptions{})
			return err == nil && len(q.Status.Hard) > 0, fmt.Sprint(err)
		})
	}
	quota("pods", "pods", "1")
	y := open(t, s, "stays")
	y.start(launch("run-first"))
	y.until("run-first", "begun", func(l protocol.Launched) bool { return l.Begun })
	y.start(launch("run-second"))
	if l := y.reason("run-second", holdfast.CauseRunnerQuota, "exceeded quota"); !l.Waits || l.Over {
		t.Errorf("got %+v", l)
	}
	crowd(t, s)
	y.start(launch("run-crowded"))
	y.reason("run-crowded", holdfast.CauseRunnerQuota, "exceeded quota")
	if err := y.cluster.Stop(t.Context(), holdfast.AttemptRef{Run: "run-crowded", Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	until(t, "its Job is gone", func() (bool, string) {
		names := jobsIn(t, s)
		return len(names) == 2, fmt.Sprint(names)
	})
	quota("jobs", "count/jobs.batch", "2")
	err := y.cluster.Start(t.Context(), launch("run-third"))
	var refused *protocol.LaunchError
	if !errors.As(err, &refused) || refused.Reason != holdfast.CauseRunnerQuota || !refused.Waits {
		t.Errorf("the third Job: %v", err)
	}
}

// crowd makes more warnings about others than one list of them has, which come before ours.
func crowd(t *testing.T, s space) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(16)
	for i := range 1001 {
		g.Go(func() error {
			_, err := admin.CoreV1().Events(s.name).Create(t.Context(), &core.Event{
				ObjectMeta: meta.ObjectMeta{Name: fmt.Sprintf("a-%04d", i)}, Type: core.EventTypeWarning, Reason: "FailedMount", Message: "of somebody else",
				InvolvedObject: core.ObjectReference{Kind: "Pod", Namespace: s.name, Name: "other"},
			}, meta.CreateOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Who may not, or no longer, says so, and what to do.
func TestRefused(t *testing.T) {
	need(t)
	s := newSpace(t, "refused")
	refused := func(t *testing.T, y *yard) *protocol.LaunchError {
		t.Helper()
		var found *protocol.LaunchError
		if err := y.cluster.Start(t.Context(), launch("run-refused")); !errors.As(err, &found) {
			t.Fatalf("the start: %v", err)
		}
		until(t, "the look is refused, too", func() (bool, string) {
			_, err := y.cluster.Launched(t.Context())
			var other *protocol.LaunchError
			return errors.As(err, &other) && other.Reason == found.Reason, fmt.Sprint(err)
		})
		return found
	}
	for name, test := range map[string]struct {
		change func(*kubernetes.Options)
		want   holdfast.Reason
	}{
		"an expired token": {func(o *kubernetes.Options) { o.Access.Server.Token = expiredToken(t, s) }, holdfast.CauseRunnerUnauthorized},
		"an account without rights": {func(o *kubernetes.Options) {
			o.Access.Server.Token = tokenOf(t, s.name, "holdfast-plan")
		}, holdfast.CauseRunnerForbidden},
		"another namespace": {func(o *kubernetes.Options) { o.Runner.Job.Namespace = "default" }, holdfast.CauseRunnerForbidden},
		"no API server":     {func(o *kubernetes.Options) { o.Access.Server.URL = "https://127.0.0.1:1" }, holdfast.CauseRunnerUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refused(t, open(t, s, "ends", test.change)); got.Reason != test.want {
				t.Errorf("got %s: %v", got.Reason, got)
			}
		})
	}
	t.Run("a namespace that is not there", func(t *testing.T) {
		y := open(t, space{"nowhere", kubeserver.AdminToken}, "ends")
		var found *protocol.LaunchError
		if err := y.cluster.Start(t.Context(), launch("run-nowhere")); !errors.As(err, &found) || found.Reason != holdfast.CauseNamespaceMissing {
			t.Errorf("got %v", err)
		}
	})
}

// expiredToken is one of the server's account that was good an hour ago.
func expiredToken(t *testing.T, s space) string {
	t.Helper()
	now := time.Now()
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(map[string]any{"alg": "RS256"}) + "." + part(map[string]any{
		"iss": kubeserver.Issuer, "aud": []string{kubeserver.Issuer}, "sub": "system:serviceaccount:" + s.name + ":holdfast-server",
		"iat": now.Add(-2 * time.Hour).Unix(), "nbf": now.Add(-2 * time.Hour).Unix(), "exp": now.Add(-time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": s.name, "serviceaccount": map[string]any{"name": "holdfast-server", "uid": "x"}},
	})
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, api.Key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// The server's account can do what it needs, and nothing more.
func TestMinimalRole(t *testing.T) {
	need(t)
	s := newSpace(t, "role")
	c, err := clientOf(s.token)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"read a Secret": func() error { _, err := c.CoreV1().Secrets(s.name).List(ctx, meta.ListOptions{}); return err },
		"patch a Job": func() error {
			_, err := c.BatchV1().Jobs(s.name).Patch(ctx, "x", types.MergePatchType, []byte(`{}`), meta.PatchOptions{})
			return err
		},
		"list Jobs elsewhere": func() error { _, err := c.BatchV1().Jobs("default").List(ctx, meta.ListOptions{}); return err },
		"delete a Pod":        func() error { return c.CoreV1().Pods(s.name).Delete(ctx, "x", meta.DeleteOptions{}) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two hundred Jobs are started and all end.
func TestManyJobs(t *testing.T) {
	startNode(t, "many")
	s := newSpace(t, "many")
	y := open(t, s, "ends")
	const many = 200
	began := time.Now()
	failed := make(chan error, many)
	for i := range many {
		go func() { failed <- y.cluster.Start(t.Context(), launch(fmt.Sprintf("run-%d", i))) }()
	}
	for range many {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	created := time.Since(began)
	until(t, "all have ended", func() (bool, string) {
		list, err := y.cluster.Launched(t.Context())
		n := 0
		for _, l := range list {
			if l.Dead && l.Over {
				n++
			}
		}
		return n == many, fmt.Sprint(n, err)
	})
	t.Logf("%d Jobs: created in %s, all over after %s", many, created, time.Since(began))
}
