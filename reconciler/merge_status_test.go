package reconciler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// ticks lets time pass in which nothing else happens.
func (f *fleet) ticks() {
	f.t.Helper()
	for range 3 {
		f.clock.Advance(time.Minute)
		f.look()
		f.post()
	}
}

// A pull request whose apply failed keeps saying so, whoever mends it, and also
// after a restart.
func TestFailedMergeIsNotReportedAsApplied(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]struct {
		how func(*fleet)
		by  func(*fleet) string
	}{
		"another pull request": {
			func(f *fleet) {
				f.open(3, map[string]string{"infra/prod/main.tf": module("three")})
				f.executeAll(good)
				f.merge(3, byMerge)
			},
			func(*fleet) string { return "superseded by #3" },
		},
		"a push": {
			func(f *fleet) {
				f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("three")})
				f.look()
				f.executeAll(good)
				f.api("root", holdfast.VerbApply, "prod")
			},
			func(f *fleet) string { return "superseded by " + f.cluster("prod").Desired.Revision.Short() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.open(2, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.merge(2, byMerge)
			f.execute(failing)
			f.executeAll(good) // the plan of what it has left
			f.ticks()
			merged := f.forge.get(2).MergeCommit
			check := func(when string) {
				t.Helper()
				if got := f.forge.status(merged, holdfast.ContextApply); got != holdfast.StatusFailure {
					t.Errorf("%s the status of its merge is %q: %q", when, got, f.forge.told(merged, holdfast.ContextApply))
				}
				comment := f.forge.comment(2)
				if !strings.Contains(comment, "no such instance type") || strings.Contains(comment, "✅") {
					t.Errorf("%s its comment says:\n%s", when, comment)
				}
			}
			check("after its apply failed,")
			mend.how(f)
			f.executeAll(good)
			f.ticks()
			if rec := f.cluster("prod"); rec.Waiting != "" || f.newest("prod").Status != holdfast.RunApplied {
				t.Fatalf("prod waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
			for _, when := range []string{"when it is mended,", "after a restart,"} {
				check(when)
				if comment := f.forge.comment(2); !strings.Contains(comment, mend.by(f)) || strings.Contains(comment, "/holdfast apply") {
					t.Errorf("%s its comment does not say that it was %s:\n%s", when, mend.by(f), comment)
				}
				if told := f.forge.told(merged, holdfast.ContextApply); !strings.Contains(told[len(told)-1], mend.by(f)) {
					t.Errorf("%s its status says %q", when, told)
				}
				f.restart()
				f.look()
				f.lookAt(2)
				f.ticks()
			}
			if pr := f.forge.get(3); pr.Number != 0 {
				if got := f.forge.status(pr.MergeCommit, holdfast.ContextApply); got != holdfast.StatusSuccess {
					t.Errorf("the status of the merge that mended it is %q", got)
				}
			}
		})
	}
}

// A retry of the same merge that goes well is its own success.
func TestAMergeThatIsAppliedAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(2, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(2, byMerge)
	f.execute(failing)
	f.executeAll(good)
	f.ticks()
	f.command(2, "alice", "/holdfast apply")
	f.executeAll(good)
	f.ticks()
	if got := f.forge.status(f.forge.get(2).MergeCommit, holdfast.ContextApply); got != holdfast.StatusSuccess {
		t.Errorf("its status is %q: %v\n%s", got, f.runs("prod"), f.forge.comment(2))
	}
	if strings.Contains(f.forge.comment(2), "superseded") {
		t.Errorf("its comment says:\n%s", f.forge.comment(2))
	}
}

// A merge whose apply has done everything before it failed, so that nothing is left
// to do, is applied, and stays so when another one follows.
func TestAMergeThatLeftNothingToDo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(2, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(2, byMerge)
	f.execute(failing)
	f.executeAll(func(protocol.Assignment) protocol.Result { return protocol.Result{Status: holdfast.RunNoChanges} })
	f.ticks()
	check := func(when string) {
		t.Helper()
		merged := f.forge.get(2).MergeCommit
		if got := f.forge.status(merged, holdfast.ContextApply); got != holdfast.StatusSuccess {
			t.Errorf("%s its status is %q: %q, %v\n%s", when, got, f.forge.told(merged, holdfast.ContextApply), f.runs("prod"), f.forge.comment(2))
		}
	}
	check("when nothing is left,")
	f.open(3, map[string]string{"infra/prod/main.tf": module("three")})
	f.executeAll(good)
	f.merge(3, byMerge)
	f.executeAll(good)
	f.ticks()
	check("after another merge,")
	f.restart()
	f.look()
	f.lookAt(2)
	f.ticks()
	check("after a restart,")
}

// A merge that brings back what is applied is not done as long as something else is being
// written: its status stays pending, and that of what comes after it, too.
func TestAMergeThatTakesBackWhatIsBeingApplied(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"an apply": "infra/prod/main.tf", "a destroy": "clusters/prod.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			change, destroys := module("two"), name == "a destroy"
			if destroys {
				change = gitserver.Delete
			}
			f.open(2, map[string]string{file: change})
			f.executeAll(good)
			f.merge(2, byMerge)
			if write := f.claim(); !write.Kind.Writes() {
				t.Fatalf("a %s is handed out: %v", write.Kind, f.runs("prod"))
			}
			f.open(3, map[string]string{file: twoClusters()[file]})
			f.merge(3, byMerge)
			f.ticks()
			merged := f.forge.get(3).MergeCommit
			if told := f.forge.told(merged, holdfast.ContextApply); f.forge.status(merged, holdfast.ContextApply) != holdfast.StatusPending {
				t.Errorf("while it is being written the status is %q\n%s", told, f.forge.comment(3))
			}
		})
	}
}

// A merge that waits, and whose cluster goes on without it, gets a last word.
func TestAMergeWhoseClusterGoesOn(t *testing.T) {
	t.Parallel()
	rename := map[string]string{
		"clusters/prod.yaml": gitserver.Delete, "clusters/live.yaml": strings.Replace(renamedDocument("live", "prod"), "infra/live", "infra/prod", 1),
	}
	canceled := func(a protocol.Assignment) protocol.Result {
		stopped := failing(a)
		stopped.Status, stopped.Reason = holdfast.RunCanceled, holdfast.ReasonCanceled
		return stopped
	}
	for name, test := range map[string]struct {
		goesOn  func(*testing.T, *fleet)
		says    string
		success bool
	}{
		"renamed": {func(t *testing.T, f *fleet) {
			f.open(3, rename)
			f.executeAll(good)
			f.merge(3, byMerge)
			f.suspend("live", false, "alice", "")
		}, "superseded by its rename to live", true},
		"applied, and renamed": {func(t *testing.T, f *fleet) {
			f.suspend("prod", false, "alice", "")
			f.look()
			f.ask("prod")
			f.executeAll(good)
			f.post()
			f.open(3, rename)
			f.executeAll(good)
			f.merge(3, byMerge)
			f.executeAll(good)
			f.restart()
			f.look()
		}, "is applied", true},
		"canceled half-way, and renamed": {func(t *testing.T, f *fleet) {
			f.suspend("prod", false, "alice", "")
			f.look()
			f.ask("prod")
			f.execute(canceled)
			f.executeAll(good)
			f.open(3, rename)
			f.executeAll(good)
			f.merge(3, byMerge)
		}, "superseded by #3", false},
		"given to another repository": {func(t *testing.T, f *fleet) {
			second, look := withOther(t, f)
			second.Commit(master, "prod", map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
			look()
			f.must(f.r.Transfer(t.Context(), "prod", other, "alice"))
			f.settle()
		}, "superseded by its transfer to " + other, true},
		"killed, held, and reverted": {func(t *testing.T, f *fleet) {
			f.suspend("prod", false, "alice", "")
			f.look()
			f.ask("prod")
			f.dies([]string{"null_resource.main"})
			f.clock.Advance(time.Minute)
			f.ask("prod")
			f.execute(func(a protocol.Assignment) protocol.Result {
				result := planned(a)
				result.Reason, result.Detail = holdfast.ReasonMayExist, "may exist already: null_resource.main"
				return result
			})
			if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonMayExist {
				t.Fatalf("it waits for %q: %v", rec.Waiting, f.runs("prod"))
			}
			f.open(3, map[string]string{"infra/prod/main.tf": module("one")})
			f.executeAll(good)
			f.merge(3, byMerge)
		}, "null_resource.main", false},
		"forced away": {func(t *testing.T, f *fleet) {
			f.repo.SetRef("refs/heads/"+master, f.repo.Rev(master+"^1"))
			f.look()
			f.post()
			f.suspend("prod", false, "alice", "")
			f.look()
		}, "superseded by ", true},
		"forced away, and back": {func(t *testing.T, f *fleet) {
			head := f.repo.Rev(master)
			f.repo.SetRef("refs/heads/"+master, f.repo.Rev(master+"^1"))
			f.look()
			f.post()
			f.repo.SetRef("refs/heads/"+master, head)
			f.look()
			f.suspend("prod", false, "alice", "")
			f.look()
			f.ask("prod")
		}, "is applied", true},
		"removed, and brought back": {func(t *testing.T, f *fleet) {
			f.open(3, map[string]string{"clusters/prod.yaml": gitserver.Delete})
			f.executeAll(good)
			f.merge(3, byMerge)
			f.open(4, map[string]string{"clusters/prod.yaml": document("prod")})
			f.executeAll(good)
			f.merge(4, byMerge)
			f.suspend("prod", false, "alice", "")
			f.look()
			f.ask("prod")
			f.executeAll(good)
			f.ticks()
			if comment := f.forge.comment(3); strings.Contains(comment, "destroyed") || !strings.Contains(comment, "superseded by #4") {
				t.Errorf("the removal says\n%s", comment)
			}
		}, "is applied", true},
		"removed": {func(t *testing.T, f *fleet) {
			f.open(3, map[string]string{"clusters/prod.yaml": gitserver.Delete})
			f.executeAll(good)
			f.suspend("prod", false, "alice", "")
			f.merge(3, byMerge)
		}, "superseded by #3", true},
		"canceled half-way, and reverted": {func(t *testing.T, f *fleet) {
			f.suspend("prod", false, "alice", "")
			f.look()
			f.ask("prod")
			f.execute(canceled)
			f.open(3, map[string]string{"infra/prod/main.tf": module("one")})
			f.executeAll(good)
			f.merge(3, byMerge)
		}, "superseded by #3", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.suspend("prod", true, "alice", "not now")
			f.open(2, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.merge(2, byMerge)
			test.goesOn(t, f)
			f.executeAll(good)
			f.ticks()
			want := holdfast.StatusFailure
			if test.success {
				want = holdfast.StatusSuccess
			}
			merged := f.forge.get(2).MergeCommit
			comment := f.forge.comment(2)
			if got := f.forge.status(merged, holdfast.ContextApply); got != want || !strings.Contains(comment, test.says) {
				t.Errorf("its status is %q, want %s; runs %v %v\n%s", f.forge.told(merged, holdfast.ContextApply), want, f.runs("prod"), f.runs("live"), comment)
			}
		})
	}
}

// Two merges that leave nothing of a branch remove nothing, and say so.
func TestMergesThatRemoveEverything(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	for number, name := range map[int]string{2: "prod", 3: "preprod"} {
		f.open(number, map[string]string{"clusters/" + name + ".yaml": gitserver.Delete})
		f.executeAll(good)
	}
	f.mergeUnnoticed(2, byMerge)
	f.merge(3, byMerge)
	f.lookAt(2)
	f.ticks()
	for number := 2; number <= 3; number++ {
		told := f.forge.told(f.forge.get(number).MergeCommit, holdfast.ContextApply)
		if last := told[len(told)-1]; !strings.Contains(last, "Missing") || strings.Contains(strings.Join(told, "\n"), "success") {
			t.Errorf("#%d: %q, want it held, and never green\n%s", number, told, f.forge.comment(number))
		}
		if comment := f.forge.comment(number); !strings.Contains(comment, "**Missing**") {
			t.Errorf("#%d says\n%s", number, comment)
		}
	}
}

// A merge that waits for a fault which was there before says so, also if it brings it again.
func TestAMergeOntoAFault(t *testing.T) {
	t.Parallel()
	fault := func(n int) map[string]string {
		return map[string]string{"clusters/prod.yaml": document("prod", fmt.Sprintf("nonsense: %d", n))}
	}
	unread := map[string]string{"clusters/prod.yaml": "kind: [\n"}
	for name, test := range map[string]struct {
		before, merged map[string]string
		reason         string
	}{
		"the same fault":        {fault(1), fault(2), "Invalid"},
		"another file":          {fault(1), map[string]string{"infra/prod/main.tf": module("two")}, "Invalid"},
		"one that hides it":     {fault(1), unread, "Missing"},
		"one that was not read": {unread, map[string]string{"clusters/prod.yaml": "kind: [[\n"}, "Missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.repo.Commit(master, "fault", test.before)
			f.look()
			f.ticks()
			f.open(2, test.merged)
			f.executeAll(good)
			f.merge(2, byMerge)
			f.ticks()
			told := f.forge.told(f.forge.get(2).MergeCommit, holdfast.ContextApply)
			if len(f.pullRequest(2).Clusters) > 0 && (len(told) == 0 || !strings.Contains(told[len(told)-1], test.reason)) {
				t.Errorf("its status is %q, the cluster waits for %q\n%s", told, f.cluster("prod").Waiting, f.forge.comment(2))
			}
			if comment := f.forge.comment(2); len(f.pullRequest(2).Clusters) > 0 && !strings.Contains(comment, "**"+test.reason+"**") {
				t.Errorf("it says\n%s", comment)
			}
		})
	}
}

// What a cluster waited for before a merge is nothing that the merge waits for:
// neither its comment nor its status says so, not even for a moment.
func TestAMergeWaitsForItsOwn(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*fleet){
		"a failed apply": func(f *fleet) {
			f.open(2, map[string]string{"infra/prod/main.tf": module("two")})
			f.executeAll(good)
			f.merge(2, byMerge)
			f.execute(failing)
			f.executeAll(good)
		},
		"a push that nobody reviewed": func(f *fleet) {
			f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two")})
			f.look()
			f.executeAll(good)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			before(f)
			if f.cluster("prod").Waiting == "" {
				t.Fatal("it waits for nothing")
			}
			f.ticks()
			f.open(3, map[string]string{"infra/prod/main.tf": module("three")})
			f.executeAll(good)
			f.mergeUnnoticed(3, byMerge)
			f.lookAt(3) // the code host tells of the pull request first
			f.post()
			f.look()
			f.post()
			merged := f.forge.get(3).MergeCommit
			applying := f.claim()
			for range 3 {
				f.lookAt(3)
				f.post()
				if comment := f.forge.comment(3); strings.Contains(comment, "held") || strings.Contains(comment, "for a person") {
					t.Errorf("while it is applied its comment says:\n%s", comment)
				}
				f.clock.Advance(time.Minute)
			}
			f.finish(applying, good(applying))
			f.executeAll(good)
			f.ticks()
			told := f.forge.told(merged, holdfast.ContextApply)
			for _, status := range told[:max(len(told)-1, 0)] {
				if !strings.HasPrefix(status, "pending applying") {
					t.Errorf("the status of the merge was %q", told)
				}
			}
			if len(told) == 0 || !strings.HasPrefix(told[len(told)-1], "success") || len(told) > 4 {
				t.Errorf("the status of the merge was %q", told)
			}
		})
	}
}

// A commit that others came after is told of a few times, not with each of their
// steps.
func TestAnOldCommitIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	base := holdfast.Revision(f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("two"), "infra/preprod/main.tf": module("two")}))
	f.look()
	f.executeAll(good)
	f.ticks()
	pushed := len(f.forge.told(base, holdfast.ContextApply))
	for n := 3; n < 6; n++ {
		text := module(strings.Repeat("x", n))
		f.open(n, map[string]string{"infra/prod/main.tf": text, "infra/preprod/main.tf": text})
		f.post()
		f.executeAll(good)
		f.merge(n, byMerge)
		for a := f.claim(); a.Run != ""; a = f.claim() {
			f.post()
			result := good(a)
			if n == 4 {
				result = failing(a)
			}
			f.finish(a, result)
			f.post()
			f.clock.Advance(time.Minute)
		}
		f.ticks()
	}
	told := f.forge.told(base, holdfast.ContextApply)
	if len(told) > pushed+1 || pushed > 4 || !strings.HasPrefix(told[len(told)-1], "failure not applied") {
		t.Errorf("it was told %d times before other merges, then %q", pushed, told)
	}
	for n := 3; n < 6; n++ {
		if told := f.forge.told(f.forge.get(n).MergeCommit, holdfast.ContextApply); len(told) > 5 {
			t.Errorf("the merge of #%d was told %d times: %q", n, len(told), told)
		}
	}
}

// A commit that is no longer the head gets a last word, wherever it went.
func TestStatusesOfOlderHeadsEnd(t *testing.T) {
	t.Parallel()
	next := map[string]string{"infra/prod/main.tf": module("three")}
	for name, tt := range map[string]struct {
		do   func(*fleet)
		want string // of the first head; empty: it stays as it was
	}{
		"a push":           {func(f *fleet) { f.push(1, next) }, "error superseded by "},
		"a push, planned":  {func(f *fleet) { f.push(1, next); f.executeAll(good) }, "error superseded by "},
		"a forced push":    {func(f *fleet) { f.force(1, next) }, "error superseded by "},
		"closed":           {func(f *fleet) { f.state(1, holdfast.PullRequestClosed) }, "error the pull request was closed"},
		"pushed, closed":   {func(f *fleet) { f.push(1, next); f.state(1, holdfast.PullRequestClosed) }, "error superseded by "},
		"closed, reopened": {func(f *fleet) { f.state(1, holdfast.PullRequestClosed); f.post(); f.state(1, holdfast.PullRequestOpen) }, "pending "},
		"merged":           {func(f *fleet) { f.merge(1, byMerge) }, "failure "},
		"pushed, a draft": {func(f *fleet) {
			f.push(1, next)
			f.change(1, func(pr *holdfast.PullRequest) { pr.Draft = true })
		}, "error superseded by "},
		"the head of another one": {func(f *fleet) {
			other := f.forge.get(1)
			f.repo.SetPullRequest(2, string(other.Head), "")
			other.Number = 2
			f.forge.set(other)
			f.lookAt(2)
			f.push(1, next)
		}, "pending "},
		"a restart before it is told": {func(f *fleet) {
			f.forge.failWith("SetStatus", holdfast.ErrUnavailable)
			f.push(1, next)
			f.post()
			f.forge.failWith("SetStatus", nil)
			f.restart()
			f.clock.Advance(time.Minute)
		}, "error superseded by "},
		"nobody saw its plan": {func(f *fleet) {
			f.forge.failWith("PutComment", holdfast.ErrUnavailable)
			f.executeAll(good)
			f.push(1, next)
			f.forge.failWith("PutComment", nil)
			f.executeAll(good)
		}, "error superseded by "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
			f.post()
			first := f.forge.get(1).Head
			tt.do(f)
			f.post()
			f.clock.Advance(10 * time.Minute)
			f.post()
			told := f.forge.told(first, holdfast.ContextPlan)
			if len(told) == 0 || !strings.HasPrefix(told[len(told)-1], tt.want) {
				t.Errorf("it says %q, want %q in the end", told, tt.want)
			}
			if slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, "success") }) {
				t.Errorf("it was green, and nobody could see its plan: %q", told)
			}
		})
	}
}

// state has the code host say that a pull request is open, or closed.
func (f *fleet) state(number int, state holdfast.PullRequestState) {
	f.t.Helper()
	f.change(number, func(pr *holdfast.PullRequest) { pr.State = state })
}

// force gives a pull request another history.
func (f *fleet) force(number int, files map[string]string) {
	f.t.Helper()
	head := f.repo.CommitOn("forced", master, "another", files)
	f.repo.SetPullRequest(number, head, "")
	f.change(number, func(pr *holdfast.PullRequest) { pr.Head, pr.Branch = holdfast.Revision(head), "forced" })
}
