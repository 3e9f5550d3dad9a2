package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
)

// forger speaks to the server as an agent does, with the token of an attempt that
// is executed.
type forger struct {
	w       *world
	attempt holdfast.AttemptRef
	token   string
}

// forge returns who speaks for the attempt that the agent executes for a cluster.
func (w *world) forge(cluster string) *forger {
	w.t.Helper()
	var told struct {
		holdfast.AttemptRef
		Token, Cluster string
	}
	w.until("the agent executes a run of "+cluster, func() (bool, string) {
		files, _ := filepath.Glob(filepath.Join(w.agentDir(holdfast.RunPlan), "attempts", "*", "attempt.json"))
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err == nil && json.Unmarshal(data, &told) == nil && told.Cluster == cluster {
				return true, ""
			}
		}
		return false, fmt.Sprint(files)
	})
	return &forger{w: w, attempt: told.AttemptRef, token: told.Token}
}

// send waits until the server takes it: while the agent uploads something else of
// the attempt, it does not.
func (f *forger) send(method, what string, body []byte) {
	f.w.t.Helper()
	f.w.until("the server takes "+method+" "+what, func() (bool, string) {
		status, answer := f.try(method, what, body)
		if status != http.StatusNoContent && status != http.StatusServiceUnavailable {
			f.w.t.Fatalf("%s %s: %d %s", method, what, status, answer)
		}
		return status == http.StatusNoContent, answer
	})
}

func (f *forger) try(method, what string, body []byte) (status int, answer string) {
	f.w.t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", f.w.path("data", "run", "agent.sock"))
	}}
	defer transport.CloseIdleConnections()
	address := fmt.Sprintf("http://agent/agent/v1/runs/%s/attempts/%d/%s", f.attempt.Run, f.attempt.Attempt, what)
	req, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		f.w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		f.w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		f.w.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// finish uploads a document that creates so many nodes, and ends the attempt as result
// says, with more keys next to what a result has.
func (f *forger) finish(nodes int, result protocol.Result, more string) {
	f.w.t.Helper()
	document := plandoc.Document{Version: plandoc.Version}
	for i := range nodes {
		after, err := plandoc.NewValue(map[string]any{"id": plandoc.Mark{Unknown: true}, "input": json.Number(fmt.Sprint(i))})
		if err != nil {
			f.w.t.Fatal(err)
		}
		document.Resources = append(document.Resources, plandoc.Resource{
			Address: fmt.Sprintf("terraform_data.node[%d]", i), Type: "terraform_data",
			Provider: "terraform.io/builtin/terraform", Actions: []string{"create"}, After: after,
		})
	}
	document.Sort()
	var encoded bytes.Buffer
	if err := document.Encode(&encoded); err != nil {
		f.w.t.Fatal(err)
	}
	f.send(http.MethodPut, "artefacts/"+protocol.ArtefactDocument, encoded.Bytes())
	f.send(http.MethodPut, "artefacts/"+protocol.ArtefactInfo, []byte(`{"text":"Plan: 0 to add, 0 to change, 0 to destroy. Nothing to see here."}`))
	result.Fence = f.attempt.Fence
	if result.PlanDigest == "" {
		result.PlanDigest = document.Digest()
	}
	text, err := json.Marshal(result)
	if err != nil {
		f.w.t.Fatal(err)
	}
	f.send(http.MethodPost, "result", []byte(strings.TrimSuffix(string(text), "}")+more+"}"))
}

// Who has got hold of the tokens of attempts speaks in the agent's name. What
// cannot be is refused and said; what can be is judged by the document alone, which
// is what the comment shows; and what is applied is what an apply finds itself, so
// that a merge of a forged plan is held.
func TestForgedOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.retries": 0, "agent.slots": 8})
	w.start()

	// Alpha has three nodes; a forged plan says that it has one.
	pr := w.fleet().open(cluster("alpha", "nodes: 3"))
	pr.untilPlanned("3 to create")
	genuine := w.newest("alpha", holdfast.RunPlan)
	w.hold("plan", "alpha")
	pr.say(dev, "/holdfast plan")
	w.untilHeld("plan", "alpha")
	w.forge("alpha").finish(1, protocol.Result{
		Status: holdfast.RunPlanned, InputDigest: genuine.InputDigest, EngineName: genuine.EngineName, EngineVersion: genuine.EngineVersion,
	}, `,"counts":{"create":0},"summary":{"counts":{"create":0}},"fingerprint":"sha256:`+strings.Repeat("0", 64)+`"`)
	pr.untilPlanned("1 to create")
	if body := pr.comment(); !strings.Contains(body, "terraform_data.node[0]") || strings.Contains(body, "node[1]") || strings.Contains(body, "Nothing to see") {
		t.Errorf("the comment does not show the document:\n%s", body)
	}
	w.release("plan", "alpha")
	w.until("the forged plan is known to be shown", func() (bool, string) {
		run := w.newest("alpha", holdfast.RunPlan)
		return run.ID != genuine.ID && !run.PostedAt.IsZero(), run.ID
	})
	pr.merge()
	w.untilWaiting("alpha", holdfast.ReasonPlanChanged)
	if n := w.countCalls("apply alpha"); n != 0 {
		t.Errorf("%d applies began", n)
	}

	for _, name := range []string{"beta", "gamma", "delta", "epsilon"} {
		w.hold("plan", name)
	}
	bad := w.fleet().open(join(cluster("beta", "nodes: 1"), cluster("gamma", "nodes: 1"), cluster("delta", "nodes: 1"), cluster("epsilon", "nodes: 1")))
	for name, result := range map[string]protocol.Result{
		"beta":    {Status: holdfast.RunApplied},
		"gamma":   {Status: holdfast.RunErrored, Reason: "by the way, all is well", Failure: &holdfast.Failure{Summary: "x", Cause: "or is it?", Transient: true}},
		"delta":   {Status: holdfast.RunPlanned, PlanDigest: holdfast.DigestOf([]byte("another"))},
		"epsilon": {Status: holdfast.RunNoChanges},
	} {
		w.untilHeld("plan", name)
		w.forge(name).finish(1, result, "")
		run := w.untilRun(name, holdfast.RunPlan, holdfast.RunErrored)
		want := holdfast.CauseInvalidOutcome
		if name == "delta" || name == "epsilon" {
			want = "UnreadablePlan"
		}
		if run.Reason != want || run.Failure == nil || run.Failure.Cause != want || run.Failure.Transient {
			t.Errorf("%s ended %s (%s) %+v, want %s", name, run.Status, run.Reason, run.Failure, want)
		}
		w.release("plan", name)
	}
	w.fleet().untilStatus(bad.head, holdfast.ContextPlan, holdfast.StatusFailure)
	bad.untilComment("the agent reported something impossible", "the plan cannot be used", "without changes, and its plan has some")
	if _, metrics := w.get(w.api + "/metrics"); strings.Contains(metrics, "by the way") {
		t.Error("a metric has the forged reason")
	}
}
