package publish

import (
	"container/list"
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// plansKept is how many bytes of memory the plans take that are kept for comments: those of
// some thousands of clusters.
const plansKept = 64 << 20

// shownPlans keeps the plans that comments were made from last: a comment is made again
// each time that one of its plans comes or goes, and the others do not change. It is safe
// for concurrent use.
type shownPlans struct {
	fleet Fleet
	most  int // bytes

	mu    sync.Mutex // guards what follows
	looks int        // that there were
	size  int        // of all that are kept
	order *list.List // of *shownPlan, the one used last in front
	byRun map[string]*list.Element
}

// shownPlan is a plan of a run that has ended.
type shownPlan struct {
	run  string
	plan *holdfast.Plan
	size int
	look int // the last one that it was used in
}

func newShownPlans(fleet Fleet, most int) *shownPlans {
	return &shownPlans{fleet: fleet, most: most, order: list.New(), byRun: make(map[string]*list.Element)}
}

// planLook is one look at a pull request, which takes the plan of each of its clusters.
type planLook struct {
	plans  *shownPlans
	number int
}

func (s *shownPlans) look() planLook {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return planLook{s, s.looks}
}

// plan returns the plan of a run that has ended; ErrNotFound if it was not kept.
func (l planLook) plan(ctx context.Context, run string) (*holdfast.Plan, error) {
	if plan := l.plans.find(run, l.number); plan != nil {
		return plan, nil
	}
	plan, err := l.plans.fleet.Plan(ctx, run)
	if err != nil {
		return nil, err
	}
	l.plans.keep(shownPlan{run: run, plan: &plan, size: planSize(&plan), look: l.number})
	return &plan, nil
}

func (s *shownPlans) find(run string, look int) *holdfast.Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.byRun[run]
	if !ok {
		return nil
	}
	s.order.MoveToFront(item)
	found := item.Value.(*shownPlan)
	found.look = look
	return found.plan
}

// keep forgets what was not used for longest to make room for a plan. What the same look has
// used stays: of a pull request whose plans are larger than the memory, each would otherwise
// be forgotten just before the next look needs it.
func (s *shownPlans) keep(p shownPlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.byRun[p.run]; ok || p.size > s.most {
		return
	}
	for s.size+p.size > s.most {
		item := s.order.Back()
		oldest := item.Value.(*shownPlan)
		if oldest.look == p.look {
			return
		}
		s.order.Remove(item)
		delete(s.byRun, oldest.run)
		s.size -= oldest.size
	}
	s.size += p.size
	s.byRun[p.run] = s.order.PushFront(&p)
}

// planSize is about how many bytes of memory a plan takes.
func planSize(p *holdfast.Plan) int {
	const plan, resource, attribute, text = 256, 192, 112, 32 // without the texts, which the plan refers to
	size := plan + len(p.Text)
	attributes := func(list []holdfast.AttributeChange) {
		for _, a := range list {
			size += attribute + len(a.Path) + len(a.Before) + len(a.After) + len(a.BeforeMark) + len(a.AfterMark)
		}
	}
	for _, list := range [][]holdfast.ResourceChange{p.Changes, p.Drift} {
		for _, c := range list {
			size += resource + len(c.Address) + len(c.PreviousAddress) + len(c.Type) + len(c.Provider) + len(c.Reason) + text*len(c.ReplacePaths)
			attributes(c.Attributes)
		}
	}
	for _, o := range p.OutputChanges {
		size += attribute + len(o.Name) + len(o.Before) + len(o.After)
	}
	for _, r := range p.Reads {
		size += text + len(r.Address)
		attributes(r.Attributes)
	}
	for _, w := range p.Warnings {
		size += attribute + len(w.Summary) + len(w.Detail) + len(w.Address) + len(w.Snippet)
	}
	return size
}
