package v1_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

var update = flag.Bool("update", false, "write golden files again")

// golden are the types whose JSON is kept stable, with all that is in them.
var golden = []any{
	v1.Agent{},
	v1.Attempt{},
	v1.AuditEntry{},
	v1.BackendLock{},
	v1.Token{},
	v1.TokenRequest{},
	v1.NewToken{},
	v1.Session{},
	v1.OnceLogin{},
	v1.Caller{},
	v1.Cluster{},
	v1.ClusterProposal{},
	v1.ClusterSummary{},
	v1.Command{},
	v1.CommandRequest{},
	v1.Delivery{},
	v1.DriftLine{},
	v1.DriftReport{},
	v1.Environment{},
	v1.Event{},
	v1.Family{},
	v1.List[string]{},
	v1.Lock{},
	v1.MigrateStateRequest{},
	v1.Output{},
	v1.Overview{},
	v1.Plan{},
	v1.Problem{},
	v1.ProposedCluster{},
	v1.ProposedRunner{},
	v1.PullRequest{},
	v1.PullRequestDetail{},
	v1.QueuedRun{},
	v1.Readiness{},
	v1.ReasonInfo{},
	v1.Replica{},
	v1.ReconcileRequest{},
	v1.Refresh{},
	v1.RefreshRequest{},
	v1.Resource{},
	v1.Run{},
	v1.Runner{},
	v1.RunnerDetail{},
	v1.RunnerProposal{},
	v1.StateMigration{},
	v1.SuspendClusterRequest{},
	v1.SuspendRequest{},
	v1.Suspension{},
	v1.Template{},
	v1.TemplateDetail{},
	v1.TransferRequest{},
	v1.Transition{},
	v1.UnlockRequest{},
	v1.UnsavedState{},
	v1.Upgrade{},
	v1.UpgradeRequest{},
	v1.Version{},
	v1.WaiveRequest{},
}

// TestGolden shows each type whole, and with nothing in it: a name that changes, or a
// field that becomes optional, breaks whoever reads it.
func TestGolden(t *testing.T) {
	t.Parallel()
	var names []string
	for _, zero := range golden {
		typ := reflect.TypeOf(zero)
		name, _, _ := strings.Cut(typ.Name(), "[")
		names = append(names, name+".golden.json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := reflect.New(typ).Elem()
			fill(whole, "", 0)
			got, err := json.MarshalIndent(map[string]any{"whole": whole.Interface(), "empty": zero}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".golden.json")
			if *update {
				if err := os.WriteFile(file, append(got, '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Errorf("JSON of %s (-want +got):\n%s", name, diff)
			}
			again := reflect.New(typ)
			var read struct{ Whole json.RawMessage }
			if err := json.Unmarshal(got, &read); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(read.Whole, again.Interface()); err != nil {
				t.Errorf("read %s: %v", name, err)
			}
		})
	}
	for _, op := range v1.Operations() {
		for _, typ := range []reflect.Type{op.Body, op.Answer} {
			if typ != nil && typ.Name() != "" && !slices.Contains(names, typ.Name()+".golden.json") {
				t.Errorf("%s of %s has no golden file", typ, op.ID)
			}
		}
	}
	files, err := filepath.Glob("testdata/*.golden.json")
	for _, file := range files {
		if !slices.Contains(names, filepath.Base(file)) {
			t.Errorf("%s is of no type", file)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// fill gives everything in v a value that says where it is.
func fill(v reflect.Value, name string, depth int) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)))
		return
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.Set(reflect.ValueOf(json.RawMessage(`{"any":"JSON"}`)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				fill(v.Field(i), field.Name, depth)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name, depth)
	case reflect.Slice:
		if depth < 6 { // relations have relations
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), name, depth+2)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, "value", depth)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), value)
	case reflect.Interface:
		v.Set(reflect.ValueOf("anything"))
	case reflect.String:
		v.SetString(strings.ToLower(name[:min(1, len(name))]) + name[min(1, len(name)):])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	default:
		panic(fmt.Sprint("cannot fill ", v.Type()))
	}
}

// TestConversions holds the converters to their fields: what a record has all of, the API
// says all of.
func TestConversions(t *testing.T) {
	t.Parallel()
	for _, got := range []any{
		of(v1.RunOf), of(v1.AttemptOf), of(v1.PlanOf), of(v1.ClusterOf), of(v1.ClusterSummaryOf), of(v1.TransitionOf), of(v1.FamilyOf),
		of(v1.ResourceOf), of(v1.DriftReportOf), of(v1.PullRequestOf), of(v1.CommentOf), of(v1.PostedStatusOf), of(v1.TemplateOf),
		of(v1.UpgradeOf), of(v1.CommandOf), of(v1.BackendLockOf), of(v1.UnsavedStateOf), of(v1.AgentOf), of(v1.ReplicaOf), of(v1.QueuedRunOf), of(v1.AuditEntryOf), of(v1.EventOf),
	} {
		for _, path := range missing(reflect.ValueOf(got), reflect.TypeOf(got).Name()) {
			t.Errorf("%s is not converted", path)
		}
	}
	back := of(v1.PlanOf)
	if diff := cmp.Diff(back, v1.PlanOf(back.Plan())); diff != "" {
		t.Errorf("plan and back:\n%s", diff)
	}
	report := of(v1.DriftReportOf)
	if diff := cmp.Diff(report.Items, v1.DriftReportOf(report.Report()).Items); diff != "" {
		t.Errorf("drift report and back:\n%s", diff)
	}
	run := of(v1.RunOf)
	if diff := cmp.Diff(run.Failure, v1.RunOf(run.Run()).Failure); diff != "" {
		t.Errorf("failure and back:\n%s", diff)
	}
}

// of converts a record in which everything has a value.
func of[From, To any](convert func(From) To) To {
	var from From
	fill(reflect.ValueOf(&from).Elem(), "", 0)
	return convert(from)
}

// missing are the fields below v that have no value.
func missing(v reflect.Value, path string) []string {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			break
		}
		var out []string
		for i := range v.NumField() {
			name := path + "." + v.Type().Field(i).Name
			switch v.Type().Field(i).Name {
			case "OnMerge", "Relations", "NotPosted":
				continue // the opposite of manual; the end of a family; of one that is read on the code host
			}
			if name == "Cluster.UpToDate" {
				continue // one whose document is removed is not
			}
			out = append(out, missing(v.Field(i), name)...)
		}
		return out
	case reflect.Pointer:
		if !v.IsNil() {
			return missing(v.Elem(), path)
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Type() != reflect.TypeFor[json.RawMessage]() {
			return missing(v.Index(0), path)
		}
	default:
	}
	if v.IsZero() {
		return []string{path}
	}
	return nil
}
