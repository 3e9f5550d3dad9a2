package kubernetes

import (
	"strconv"
	"strings"
	"sync"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// goneKept is how long a Job that is gone is listed, with the last word of its Pod.
const goneKept = 10 * time.Minute

// seen is what was seen of our Jobs and their Pods, by the name of the Job. What is known of
// a Pod's end is kept when the Pod is gone. It is safe for concurrent use.
type seen struct {
	changed *broadcast

	mu     sync.Mutex
	byName map[string]*object
	errs   map[string]error // of the last look, by the kind of object
	looked map[string]bool
}

// object is a Job with its Pod.
type object struct {
	run     string
	attempt int

	job  *batch.Job // nil: not seen, or gone
	gone time.Time  // when it was seen to be gone, though it was there; zero: it is there, or never was
	pod  *core.Pod  // as it was last seen; nil: never
	lost bool       // the Pod is gone
	// several: it had more than one Pod, so that the end of one says nothing of another.
	several bool
	// dead is the Pod's last word: its container has ended, by its kubelet.
	dead  *core.ContainerStateTerminated
	event event // of what keeps it from starting
}

// statusUnknown is what a kubelet says of a container that it does not find: it has lost it, and
// proves nothing of its processes.
const statusUnknown = "ContainerStatusUnknown"

// event is a warning.
type event struct{ reason, message string }

func newSeen() *seen {
	return &seen{changed: newBroadcast(), byName: map[string]*object{}, errs: map[string]error{}, looked: map[string]bool{}}
}

func (s *seen) wait() <-chan struct{} { return s.changed.wait() }

// failed notes how the last look at a kind of objects went.
func (s *seen) failed(kind string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs[kind], s.looked[kind] = err, true
	s.changed.wake()
}

// at returns the object of a Job or Pod with these labels; nil if it is not one of ours.
func (s *seen) at(labels map[string]string) *object {
	attempt, err := strconv.Atoi(labels[labelAttempt])
	if err != nil || labels[labelRun] == "" {
		return nil
	}
	ref := holdfast.AttemptRef{Run: labels[labelRun], Attempt: attempt}
	o := s.byName[jobName(ref)]
	if o == nil {
		o = &object{run: ref.Run, attempt: ref.Attempt}
		s.byName[jobName(ref)] = o
	}
	return o
}

// jobs records a list of all Jobs.
func (s *seen) jobs(list []batch.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[*object]bool{}
	for i := range list {
		if o := s.at(list[i].Labels); o != nil {
			o.job, o.gone = &list[i], time.Time{}
			there[o] = true
		}
	}
	for _, o := range s.byName {
		if o.job != nil && !there[o] {
			o.job, o.gone = nil, time.Now()
		}
	}
	s.changed.wake()
}

func (s *seen) job(job *batch.Job, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.at(job.Labels); o != nil {
		if o.job, o.gone = job, (time.Time{}); gone {
			o.job, o.gone = nil, time.Now()
		}
	}
	s.changed.wake()
}

// pods records a list of all Pods.
func (s *seen) pods(list []core.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[*object]bool{}
	for i := range list {
		if o := s.at(list[i].Labels); o != nil {
			o.takePod(&list[i], false)
			there[o] = true
		}
	}
	for _, o := range s.byName {
		if o.pod != nil && !there[o] {
			o.lostPod()
		}
	}
	s.changed.wake()
}

// lostPod records that the Pod is gone. One whose Job was never seen was left over by a Job
// that was deleted before: there will be no more events of it.
func (o *object) lostPod() {
	if o.lost = true; o.job == nil && o.gone.IsZero() {
		o.gone = time.Now()
	}
}

func (s *seen) sawPod(pod *core.Pod, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.at(pod.Labels); o != nil {
		o.takePod(pod, gone)
	}
	s.changed.wake()
}

func (o *object) takePod(pod *core.Pod, gone bool) {
	if o.pod != nil && o.pod.UID != pod.UID {
		o.several, o.dead = true, nil
	}
	o.pod, o.lost = pod, false
	if gone {
		o.lostPod()
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == mainContainer && c.State.Terminated != nil && c.State.Terminated.Reason != statusUnknown {
			o.dead = c.State.Terminated
		}
	}
}

// someWait reports whether there is a Job whose Pod is not there or does not start.
func (s *seen) someWait() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.byName {
		if o.waits() {
			return true
		}
	}
	return false
}

func (o *object) waits() bool {
	return o.job != nil && !over(o.job) && (o.pod == nil || !o.lost && o.pod.Status.Phase == core.PodPending)
}

// events records warnings about Jobs and Pods.
func (s *seen) events(list []core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.byName {
		if !o.waits() {
			continue
		}
		for i := range list {
			about := list[i].InvolvedObject.UID
			if about == o.job.UID || o.pod != nil && about == o.pod.UID {
				o.event = event{list[i].Reason, list[i].Message}
			}
		}
	}
	s.changed.wake()
}

// list is what there is; an error if the last look at it has failed, or there was none.
func (s *seen) list() ([]protocol.Launched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []protocol.Launched
	for name, o := range s.byName {
		if o.job == nil && !o.gone.IsZero() && time.Since(o.gone) > goneKept {
			delete(s.byName, name)
			continue
		}
		list = append(list, o.launched(name))
	}
	for _, kind := range []string{"jobs", "pods"} {
		if err := s.errs[kind]; err != nil {
			return list, err
		}
		if !s.looked[kind] {
			return list, &protocol.LaunchError{Err: errNotLooked}
		}
	}
	return list, nil
}

// place is where a Pod is, for people.
func (o *object) place() string {
	if o.pod == nil {
		return ""
	}
	place := "Pod " + o.pod.Name
	if o.pod.Spec.NodeName != "" {
		place += " on node " + o.pod.Spec.NodeName
	}
	return place
}

func oneLine(parts ...string) string {
	var some []string
	for _, p := range parts {
		if p = strings.Join(strings.Fields(p), " "); p != "" {
			some = append(some, p)
		}
	}
	text := strings.Join(some, ": ")
	return strings.ToValidUTF8(text[:min(len(text), 1000)], "")
}
