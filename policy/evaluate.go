package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/holdfast-dev/holdfast"
)

// Limits bound what an evaluation may take, as far as that can be bounded from within.
type Limits struct {
	Policy  time.Duration // for one policy; zero means 5 s
	Results int           // more are omitted; zero means 1,000
	Message int           // bytes of a message and of a link; zero means 2,000
}

func (l *Limits) setDefaults() {
	if l.Policy == 0 {
		l.Policy = 5 * time.Second
	}
	if l.Results == 0 {
		l.Results = 1000
	}
	if l.Message == 0 {
		l.Message = 2000
	}
}

// Evaluate evaluates each policy of the set. Begins, if it is not nil, is called with each
// one before it.
func (s *Set) Evaluate(ctx context.Context, in Input, limits Limits, begins func(policy string)) holdfast.PolicyReport {
	limits.setDefaults()
	report := holdfast.PolicyReport{Set: s.id, Evaluated: len(s.rules), Policies: s.Policies(), Faults: slices.Clone(s.faults)}
	for i := range report.Policies {
		report.Policies[i].Description = ""
	}
	e := evaluation{set: s, in: in, limits: limits}
	for _, r := range s.rules {
		if begins != nil {
			begins(r.ID)
		}
		results, fault, undecided := e.judge(ctx, r)
		switch {
		case undecided:
			report.Undecided = append(report.Undecided, r.ID)
		case fault != nil:
			report.Faults = append(report.Faults, *fault)
		default:
			report.Results = append(report.Results, results...)
		}
	}
	report.Arrange()
	report.Verdict = holdfast.VerdictOf(report)
	report.Shorten(limits.Results)
	return report
}

// evaluation is one evaluation of a set. What policies of it have asked for is kept for the
// others.
type evaluation struct {
	set    *Set
	in     Input
	limits Limits
	shared topdown.VirtualCache
	tracer topdown.QueryTracer // nil: nobody looks on
}

// judge evaluates a policy.
func (e *evaluation) judge(ctx context.Context, r rule) (results []holdfast.PolicyResult, fault *holdfast.PolicyFault, undecided bool) {
	before := *e.in.reads
	defer func() {
		p := recover()
		switch {
		case p == nil:
			return
		case e.in.hidden: // a comparison with an object that has hidden values
			results, fault, undecided = nil, nil, true
		default:
			results, fault = nil, e.faultOf(r, fmt.Errorf("its evaluation broke off: %v", p))
		}
		e.shared = nil
	}()
	answer, err := e.ask(ctx, r.ref)
	if err == nil && answer != nil {
		results, err = e.read(r, answer)
	}
	if err == nil && len(results) > 0 && r.exception != nil {
		err = e.except(ctx, r, results)
	}
	if e.in.hidden && (*e.in.reads > before || err != nil && strings.Contains(err.Error(), guardedName)) {
		return nil, nil, true
	}
	if err != nil {
		return nil, e.faultOf(r, err), false
	}
	return results, nil, false
}

// answerVar is what an answer is bound to.
const answerVar = ast.Var("answer")

// ask evaluates what is at a reference; nil if nothing is.
func (e *evaluation) ask(ctx context.Context, ref ast.Ref) (*ast.Term, error) {
	query, err := e.set.compiler.QueryCompiler().Compile(ast.NewBody(ast.Equality.Expr(ast.NewTerm(answerVar), ast.NewTerm(ref))))
	if err != nil {
		return nil, err
	}
	cancel := topdown.NewCancel()
	limited, stop := context.WithTimeoutCause(ctx, e.limits.Policy, fmt.Errorf("it took longer than %s", e.limits.Policy))
	defer stop()
	defer context.AfterFunc(limited, cancel.Cancel)()
	found := (*ast.Term)(nil)
	err = storage.Txn(limited, e.set.store, storage.TransactionParams{}, func(txn storage.Transaction) error {
		q := topdown.NewQuery(query).WithCompiler(e.set.compiler).WithStore(e.set.store).WithTransaction(txn).
			WithInput(ast.NewTerm(e.in.value)).WithCancel(cancel).WithStrictBuiltinErrors(true).WithTime(time.Unix(0, 0)).
			WithVirtualCache(e.cache())
		if e.tracer != nil {
			q = q.WithQueryTracer(e.tracer)
		}
		results, err := q.Run(limited)
		if err == nil && len(results) > 0 {
			found = results[0][answerVar]
		}
		return err
	})
	if err != nil {
		e.shared = nil // it may have been left in the middle
	}
	if topdown.IsCancel(err) && limited.Err() != nil {
		return nil, context.Cause(limited)
	}
	return found, err
}

// cache is where answers are kept: with hidden values for one question alone, as the reader
// of a kept answer reads what it was made of.
func (e *evaluation) cache() topdown.VirtualCache {
	if e.in.hidden {
		return topdown.NewVirtualCache()
	}
	if e.shared == nil {
		e.shared = topdown.NewVirtualCache()
	}
	return e.shared
}

// faultOf is why a policy could not answer.
func (e *evaluation) faultOf(r rule, err error) *holdfast.PolicyFault {
	message, hint := err.Error(), ""
	at := &ast.Location{File: r.File, Row: r.Line}
	var failed *topdown.Error
	var compiled ast.Errors
	switch {
	case errors.As(err, &failed):
		message = failed.Message
		if failed.Location != nil && failed.Location.File != "" {
			at = failed.Location
		}
		if failed.Code == topdown.ConflictErr {
			hint = "rules of one name give different values: use \"contains\" for several answers"
		}
	case errors.As(err, &compiled) && len(compiled) > 0:
		message = compiled[0].Message
	}
	fault := faultAt(r.ID, r.File, at, cut(message, e.limits.Message), hint)
	return &fault
}
