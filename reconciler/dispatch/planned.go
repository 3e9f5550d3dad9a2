package dispatch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
)

// maxPlanDocument bounds the document that is read of a run, and what is next to
// it, in bytes.
const maxPlanDocument = 512 << 20

// causePlanDocument is the cause of an attempt that ends errored because its plan is
// not what it says.
const causePlanDocument = holdfast.CauseUnreadablePlan

// recordPlan derives what an attempt's plan would do from the document that it has
// left, and keeps that for people. Nothing that an agent says of its plan counts
// next to the document: it has to be the one that the result names, and how the
// attempt ended has to agree with it. A result that does not becomes an error.
func (r results) recordPlan(
	ctx context.Context, run holdfast.Run, ref holdfast.AttemptRef, result protocol.Result,
) (holdfast.Plan, protocol.Result, error) {
	if result.PlanDigest == "" && !result.Status.Good() {
		return holdfast.Plan{}, result, nil // it did not get that far
	}
	plan, document, err := r.readDocument(ctx, ref.Run, result.PlanDigest)
	var bad *badPlanError
	// What is damaged stays so, and the attempt is to end; a store that is unavailable
	// comes back.
	if err != nil && !errors.As(err, &bad) && !errors.Is(err, holdfast.ErrUnavailable) && r.unread.lasts(ref) {
		bad = &badPlanError{err}
	}
	switch {
	case bad != nil:
		r.unread.forget(ref)
		return holdfast.Plan{}, spoiled(result, bad), nil
	case err != nil:
		return plan, result, err // the agent sends its result again
	}
	r.unread.forget(ref)
	if bad := disagrees(result.Status, plan.Counts); bad != nil {
		return holdfast.Plan{}, spoiled(result, bad), nil
	}
	plan.Cost = r.costOf(ctx, run, result.Matched, document)
	if err := r.putPlan(ctx, ref, plan); err != nil {
		return plan, result, fmt.Errorf("keep plan of run %s: %w", ref.Run, err)
	}
	return plan, result, nil
}

// putPlan keeps a plan as JSON, as it is encoded.
func (r results) putPlan(ctx context.Context, ref holdfast.AttemptRef, plan holdfast.Plan) error {
	from, to := io.Pipe()
	encoded := make(chan struct{})
	go func() {
		defer close(encoded)
		_ = to.CloseWithError(encodePlan(to, plan))
	}()
	err := r.store.PutArtefact(ctx, ref, protocol.ArtefactPlan, from)
	_ = from.Close()
	<-encoded
	return err
}

// encodePlan writes a plan as JSON, one change after the other: as a whole, a large one
// would be in memory once more for each buffer that it goes through.
func encodePlan(w io.Writer, plan holdfast.Plan) error {
	changes := plan.Changes
	plan.Changes = nil
	rest, err := json.Marshal(plan)
	if err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	b := bufio.NewWriterSize(w, 64<<10)
	_, _ = b.WriteString(`{"changes":[`)
	for i := range changes {
		data, err := json.Marshal(&changes[i])
		if err != nil {
			return fmt.Errorf("encode %s: %w", changes[i].Address, err)
		}
		if i > 0 {
			_ = b.WriteByte(',')
		}
		_, _ = b.Write(data)
	}
	_, _ = b.WriteString("],")
	_, _ = b.Write(rest[1:]) // it has other members
	return b.Flush()
}

// badPlanError says what is wrong with what an attempt has left.
type badPlanError struct{ err error }

func (e *badPlanError) Error() string { return e.err.Error() }

func (e *badPlanError) Unwrap() error { return e.err }

// readDocument reads the document of a run, and what is next to it.
func (r results) readDocument(
	ctx context.Context, run string, want holdfast.Digest,
) (plan holdfast.Plan, document plandoc.Document, err error) {
	file, err := r.store.Artefact(ctx, run, protocol.ArtefactDocument)
	if errors.Is(err, holdfast.ErrNotFound) {
		why := "the agent left no plan document"
		if want == "" { // agents that make one name it
			why += ": is it older than the server?"
		}
		return plan, document, &badPlanError{errors.New(why)}
	} else if err != nil {
		return plan, document, err
	}
	defer file.Close()
	read := &artefactReader{from: file}
	document, err = plandoc.Decode(io.LimitReader(read, maxPlanDocument))
	if read.err != nil {
		return plan, document, fmt.Errorf("read plan document of run %s: %w", run, read.err)
	} else if err != nil {
		return plan, document, &badPlanError{err}
	}
	info, err := r.readInfo(ctx, run)
	if err != nil {
		return plan, document, err
	}
	if err := info.Validate(); err != nil {
		return plan, document, &badPlanError{err}
	}
	plan = plandiff.Plan(document, info)
	if !plan.Digest.Equal(want) {
		return plan, document, &badPlanError{fmt.Errorf("the document is %s, the result is of %s", plan.Digest.Short(), want.Short())}
	}
	return plan, document, nil
}

// readInfo reads what is next to the document of a run.
func (r results) readInfo(ctx context.Context, run string) (info plandoc.Info, err error) {
	bad := &badPlanError{errors.New("the data that belongs to its plan cannot be read")}
	about, err := r.store.Artefact(ctx, run, protocol.ArtefactInfo)
	if errors.Is(err, holdfast.ErrNotFound) {
		return info, bad
	} else if err != nil {
		return info, err
	}
	defer about.Close()
	read := &artefactReader{from: about}
	err = json.NewDecoder(io.LimitReader(read, maxPlanDocument)).Decode(&info)
	if read.err != nil {
		return info, fmt.Errorf("read %s of run %s: %w", protocol.ArtefactInfo, run, read.err)
	} else if err != nil {
		return info, bad
	}
	return info, nil
}

// readPatience is how long what an attempt has left may not be readable before that
// counts as what is wrong with it.
const readPatience = 10 * time.Minute

// unread remembers since when what attempts have left cannot be read. It is safe for
// concurrent use.
type unread struct {
	now func() time.Time

	mu    sync.Mutex
	since map[holdfast.AttemptRef]time.Time
}

// lasts notes that it could not be read, and reports whether that has been so for long.
func (u *unread) lasts(ref holdfast.AttemptRef) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	since, known := u.since[ref]
	if !known {
		u.since[ref] = u.now()
	}
	return known && u.now().Sub(since) > readPatience
}

func (u *unread) forget(ref holdfast.AttemptRef) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.since, ref)
}

// artefactReader remembers why reading failed: what a disk or an object store of ours
// does not give back now says nothing of what an agent has left in it.
type artefactReader struct {
	from io.Reader
	err  error
}

func (r *artefactReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// disagrees says how an attempt cannot have ended with a plan of these counts;
// nil if it can.
func disagrees(status holdfast.RunStatus, counts holdfast.Counts) *badPlanError {
	switch {
	case status == holdfast.RunNoChanges && !counts.Zero():
		return &badPlanError{errors.New("it ended without changes, and its plan has some")}
	case (status == holdfast.RunPlanned || status == holdfast.RunApplied) && counts.Zero():
		return &badPlanError{fmt.Errorf("it ended %s, and its plan has no changes", status)}
	default:
		return nil
	}
}

// lacking is a result of an attempt of which the records may lack something, whatever of it is
// there: with an input, a lock file or resources of nothing, or of a former attempt, the plan
// would be taken for another one. It is made again. What failed anyway keeps its failure.
func lacking(result protocol.Result) protocol.Result {
	result.PlanDigest = ""
	if !result.Status.Good() {
		return result
	}
	result.Status, result.Reason, result.Detail, result.Matched = holdfast.RunErrored, holdfast.CauseArtefactUnavailable, "", ""
	result.Failure = &holdfast.Failure{
		Step: "plan", Cause: holdfast.CauseArtefactUnavailable, Transient: true,
		Summary: "the server's machine was down while this ran: the plan, or a part of it, may be lost",
	}
	return result
}

// spoiled is a result whose plan cannot be believed.
func spoiled(result protocol.Result, bad *badPlanError) protocol.Result {
	result.Status, result.Reason, result.Detail = holdfast.RunErrored, causePlanDocument, ""
	result.Matched = ""
	result.Failure = &holdfast.Failure{
		Step: "plan", Cause: causePlanDocument, Summary: "the plan cannot be used: " + bad.Error(),
	}
	return result
}
