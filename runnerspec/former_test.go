package runnerspec_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/runnerspec"
)

// A runner that is edited keeps its former places, each once, and not the one where it is.
func TestFormerPlaces(t *testing.T) {
	t.Parallel()
	in := func(namespace, image string) runnerspec.Runner {
		return runnerspec.Runner{Name: "east", Job: &runnerspec.Job{Namespace: namespace, Image: image}}
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	rec := runnerspec.Record{Document: in("a", "1")}
	edit := func(next runnerspec.Runner, want ...string) {
		t.Helper()
		now = now.Add(time.Hour)
		rec.Former = rec.Leave(next, now)
		rec.Document = next
		var got []string
		for _, f := range rec.FormerSince(time.Time{}) {
			got = append(got, f.Job.Namespace)
		}
		if len(got) != len(want) {
			t.Fatalf("former places are %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("former places are %v, want %v", got, want)
			}
		}
	}
	edit(in("a", "2"))
	edit(in("b", "2"), "a")
	edit(in("c", "2"), "b", "a")
	edit(in("a", "2"), "c", "b")
	edit(in("a", "3"), "c", "b")
	if got := rec.FormerSince(now.Add(-90 * time.Minute)); len(got) != 1 || got[0].Job.Namespace != "c" {
		t.Errorf("left of late are %v", got)
	}
	for range 40 {
		rec.Former = rec.Leave(in("x", ""), now)
		rec.Document = in(now.String(), "")
		now = now.Add(time.Hour)
	}
	if n := len(rec.Former); n > 8 {
		t.Errorf("%d former places are kept", n)
	}
}

func TestSamePlace(t *testing.T) {
	t.Parallel()
	job := &runnerspec.Job{Namespace: "runs"}
	server := func(url, proxy string) runnerspec.Runner {
		return runnerspec.Runner{Job: job, Kubernetes: &runnerspec.KubernetesAccess{Server: &runnerspec.KubernetesServer{URL: url, ProxyURL: proxy}}}
	}
	eks := func(name, role string) runnerspec.Runner {
		return runnerspec.Runner{Job: job, Kubernetes: &runnerspec.KubernetesAccess{EKS: &runnerspec.EKSCluster{Region: "r", Name: name, RoleARN: role}}}
	}
	ecs := func(cluster, image string) runnerspec.Runner {
		return runnerspec.Runner{ECS: &runnerspec.ECSTask{Region: "r", Cluster: cluster, Image: image}}
	}
	for name, test := range map[string]struct {
		a, b runnerspec.Runner
		same bool
	}{
		"a proxy":         {server("https://a", ""), server("https://a", "http://proxy"), true},
		"an API server":   {server("https://a", ""), server("https://b", ""), false},
		"a role":          {eks("a", "arn:aws:iam::1:role/x"), eks("a", "arn:aws:iam::1:role/y"), true},
		"an account":      {eks("a", "arn:aws:iam::1:role/x"), eks("a", "arn:aws:iam::2:role/x"), false},
		"a cluster":       {eks("a", ""), eks("b", ""), false},
		"an image":        {ecs("a", "1"), ecs("a", "2"), true},
		"a cluster (ECS)": {ecs("a", ""), ecs("b", ""), false},
		"standing agents": {runnerspec.Runner{}, runnerspec.Runner{Keys: []string{"x"}}, true},
	} {
		if got := test.a.SamePlace(test.b); got != test.same {
			t.Errorf("%s: %t", name, got)
		}
	}
}
