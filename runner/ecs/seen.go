package ecs

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

const (
	// goneKept is how long a task that has ended, or that ECS no longer knows, is listed
	// at least, with what was last known of it: lists of ECS lag behind.
	goneKept = 10 * time.Minute
	// A task is taken for gone when ECS does not know it several times in a row, and one that it
	// has never shown only after a while: for a moment it does not know what it has started.
	missedOften = 3
	shownWithin = 2 * time.Minute
	// tagTimeout is how long a task may exist, in seconds.
	tagTimeout = "holdfast.dev/timeout"
)

var errNotLooked = errors.New("ECS was not asked yet")

// seen is what was seen of our tasks, by ARN. It is safe for concurrent use.
type seen struct {
	changed *broadcast // something else is known
	started *broadcast // there is something new to look at

	mu     sync.Mutex
	byARN  map[string]*object
	err    error // of the last look
	looked bool
}

// object is a task.
type object struct {
	ref    holdfast.AttemptRef
	task   types.Task
	since  time.Time // it was first seen, or started
	shown  bool      // ECS has shown it since it was started
	missed int       // how often in a row ECS did not know it
	over   time.Time // it was first seen to be over, or gone; zero: it is neither
	gone   bool
}

func newSeen() *seen {
	return &seen{changed: newBroadcast(), started: newBroadcast(), byARN: map[string]*object{}}
}

// note remembers a task of an attempt before it was looked at.
func (s *seen) note(ref holdfast.AttemptRef, arns ...string) {
	s.mu.Lock()
	for _, arn := range arns {
		if s.byARN[arn] == nil {
			s.byARN[arn] = &object{ref: ref, since: time.Now(), task: types.Task{TaskArn: aws.String(arn), LastStatus: aws.String(provisioning)}}
		}
	}
	s.mu.Unlock()
	s.started.wake()
	s.changed.wake()
}

// took records what ECS says of tasks: when they are started, or later. What is older than
// what is known is left out.
func (s *seen) took(tasks []types.Task, later bool) {
	s.mu.Lock()
	for _, task := range tasks {
		arn := aws.ToString(task.TaskArn)
		o := s.byARN[arn]
		if o == nil {
			ref, ok := attemptOf(aws.ToString(task.StartedBy))
			if !ok {
				continue
			}
			o = &object{ref: ref, since: time.Now()}
			s.byARN[arn] = o
		}
		o.shown, o.missed = o.shown || later, 0
		if task.Version >= o.task.Version {
			if len(task.Tags) == 0 {
				task.Tags = o.task.Tags
			}
			o.task, o.gone = task, false
		}
		switch {
		case !over(o.task):
			o.over = time.Time{}
		case o.over.IsZero():
			o.over = time.Now()
		}
	}
	s.mu.Unlock()
	s.changed.wake()
}

// missing records that ECS does not know tasks.
func (s *seen) missing(arns []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, arn := range arns {
		o := s.byARN[arn]
		if o == nil || o.gone || !o.shown && time.Since(o.since) < shownWithin {
			continue
		}
		if o.missed++; o.missed >= missedOften {
			o.gone, o.over = true, time.Now()
		}
	}
}

// toDescribe reads a list of all our tasks, and returns those of which something new may be
// known.
func (s *seen) toDescribe(listed []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := make(map[string]bool, len(listed))
	var ask []string
	for _, arn := range listed {
		in[arn] = true
		if o := s.byARN[arn]; o == nil || !ended(o.task) {
			ask = append(ask, arn)
		}
	}
	for arn, o := range s.byARN {
		switch {
		case in[arn]: // for an hour after its end
		case !o.over.IsZero() && time.Since(o.over) > goneKept:
			delete(s.byARN, arn)
		case !ended(o.task) && !o.gone:
			ask = append(ask, arn)
		}
	}
	return ask
}

// lookedAt notes how a look went.
func (s *seen) lookedAt(err error) {
	s.mu.Lock()
	s.err, s.looked = err, true
	s.mu.Unlock()
	s.changed.wake()
}

// alive are the tasks of an attempt that have not ended and were not asked to; false if none of
// the attempt is known.
func (s *seen) alive(ref holdfast.AttemptRef) (arns []string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for arn, o := range s.byARN {
		if o.ref.Run != ref.Run || o.ref.Attempt != ref.Attempt || o.gone {
			continue
		}
		known = true
		if !over(o.task) && aws.ToString(o.task.DesiredStatus) != stopped {
			arns = append(arns, arn)
		}
	}
	return arns, known
}

// late are the tasks that exist for longer than they may.
func (s *seen) late(now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var arns []string
	for arn, o := range s.byARN {
		seconds, err := strconv.Atoi(tagged(o.task.Tags, tagTimeout))
		if err != nil || o.task.CreatedAt == nil || over(o.task) || aws.ToString(o.task.DesiredStatus) == stopped {
			continue
		}
		if now.Sub(*o.task.CreatedAt) > time.Duration(seconds)*time.Second {
			arns = append(arns, arn)
		}
	}
	return arns
}

// pace is how soon what is known may have changed.
func (s *seen) pace() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	pace := idlePace
	for _, o := range s.byARN {
		switch {
		case over(o.task) || o.gone:
		case !begun(o.task) || aws.ToString(o.task.DesiredStatus) == stopped:
			return startPace
		default:
			pace = runPace
		}
	}
	return pace
}

// list is what there is, one for each attempt; an error if the last look has failed, or there
// was none.
func (s *seen) list() ([]protocol.Launched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	byRef := map[holdfast.AttemptRef]protocol.Launched{}
	for _, o := range s.byARN {
		now := o.launched()
		if was, several := byRef[now.Ref()]; several {
			// The end of one says nothing of another.
			dead := was.Dead && now.Dead
			if was.Over && !now.Over {
				was = now
			}
			now = was
			now.Dead = dead
		}
		byRef[now.Ref()] = now
	}
	var list []protocol.Launched
	for _, l := range byRef {
		list = append(list, l)
	}
	switch {
	case s.err != nil:
		return list, s.err
	case !s.looked:
		return list, &protocol.LaunchError{Err: errNotLooked}
	}
	return list, nil
}

// broadcast wakes all who wait.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{ch: make(chan struct{})} }

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ch)
	b.ch = make(chan struct{})
}
