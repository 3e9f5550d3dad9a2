//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast/internal/testenv/container"
)

// evictAnnotation has a Pod evicted.
const evictAnnotation = "standin/evict"

// worker looks after one Pod from when it is bound until it has ended.
type worker struct {
	k   *kubelet
	pod *core.Pod // as it was bound
	dir string    // of its volumes

	mu       sync.Mutex
	cmd      *container.Container // that runs now; nil: none
	why      string               // why it was killed: a reason of a Pod, or OOMKilled; empty: nobody has
	killed   bool
	deleting bool
	evicted  string // its message

	changed chan struct{} // it was deleted, or killed
	over    chan struct{}
}

func newWorker(k *kubelet, pod *core.Pod) *worker {
	return &worker{
		k: k, pod: pod.DeepCopy(), dir: filepath.Join(k.dir, "pods", string(pod.UID)),
		changed: make(chan struct{}), over: make(chan struct{}),
	}
}

// saw takes in that the Pod is to be deleted or evicted.
func (w *worker) saw(pod *core.Pod) {
	w.mu.Lock()
	message := pod.Annotations[evictAnnotation]
	evict := message != "" && w.evicted == "" && w.cmd != nil
	if evict {
		w.evicted = message
	}
	terminate := pod.DeletionTimestamp != nil && !w.deleting
	if terminate {
		w.deleting = true
		close(w.changed)
	}
	cmd := w.cmd
	w.mu.Unlock()
	if evict {
		w.kill("Evicted")
	}
	if !terminate {
		return
	}
	if cmd != nil {
		cmd.Signal(syscall.SIGTERM)
	}
	grace := 30 * time.Second
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	time.AfterFunc(grace, func() { w.kill("") })
	go func() {
		<-w.over
		w.k.remove(context.Background(), pod)
	}()
}

// kill ends the Pod's container, if there is one, with all that it has started.
func (w *worker) kill(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.killed {
		w.killed, w.why = true, why
	}
	if w.cmd != nil {
		w.cmd.Signal(syscall.SIGKILL)
	}
}

// errStopped says that a Pod ended before its container was started.
var errStopped = errors.New("the Pod was deleted")

// run is the life of the Pod.
func (w *worker) run(ctx context.Context) {
	defer close(w.over)
	// The kubelet's own duty, and counted from when it first sees the Pod.
	if seconds := w.pod.Spec.ActiveDeadlineSeconds; seconds != nil {
		timer := time.AfterFunc(time.Duration(*seconds)*time.Second, func() { w.kill("DeadlineExceeded") })
		defer timer.Stop()
	}
	began := meta.Now()
	w.say(ctx, func(s *core.PodStatus) {
		s.Phase, s.StartTime, s.HostIP = core.PodPending, &began, "127.0.0.1"
		setCondition(s, core.PodCondition{Type: core.PodScheduled, Status: core.ConditionTrue})
		s.ContainerStatuses = []core.ContainerStatus{w.waiting("ContainerCreating", "")}
	})
	if len(w.pod.Spec.Containers) != 1 {
		w.fail(ctx, "Error", "the stand-in runs one container")
		return
	}
	all := append(w.pod.Spec.InitContainers, w.pod.Spec.Containers...) //nolint:gocritic // a new list is meant
	for i := range all {
		last := i == len(all)-1
		ended, err := w.execute(ctx, &all[i], last)
		switch {
		case errors.Is(err, errStopped):
			w.fail(ctx, "", "")
			return
		case err != nil:
			w.fail(ctx, "StartError", err.Error())
			return
		case last || ended.ExitCode != 0:
			w.finish(ctx, &all[i], ended, last)
			return
		}
	}
}

// execute starts a container once all that it needs is there, and waits for its end.
func (w *worker) execute(ctx context.Context, c *core.Container, main bool) (core.ContainerStateTerminated, error) {
	spec, err := w.prepare(ctx, c)
	if err != nil {
		return core.ContainerStateTerminated{}, err
	}
	w.mu.Lock()
	if w.killed || w.deleting {
		w.mu.Unlock()
		return core.ContainerStateTerminated{}, errStopped
	}
	cmd, err := container.Start(spec)
	w.cmd = cmd
	w.mu.Unlock()
	if err != nil {
		return core.ContainerStateTerminated{}, err
	}
	began := meta.Now()
	if main {
		w.say(ctx, func(s *core.PodStatus) {
			s.Phase = core.PodRunning
			s.ContainerStatuses = []core.ContainerStatus{{
				Name: c.Name, Image: c.Image, Ready: true, State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: began}},
			}}
			setCondition(s, core.PodCondition{Type: core.PodReady, Status: core.ConditionTrue})
		})
	}
	if limit := c.Resources.Limits.Memory().Value(); limit > 0 {
		go cmd.WatchMemory(limit, func() { w.kill("OOMKilled") })
	}
	code := cmd.Wait()
	w.mu.Lock()
	w.cmd = nil
	why := w.why
	w.mu.Unlock()
	ended := core.ContainerStateTerminated{ExitCode: int32(code), Reason: "Error", StartedAt: began, FinishedAt: meta.Now()} //nolint:gosec // an exit code
	switch {
	case why == "OOMKilled":
		ended.Reason = why
	case code == 0:
		ended.Reason = "Completed"
	}
	if code != 0 && c.TerminationMessagePolicy == core.TerminationMessageFallbackToLogsOnError {
		text, _ := os.ReadFile(w.logFile(c.Name))
		ended.Message = string(text[max(0, len(text)-2048):])
	}
	return ended, nil
}

// finish writes how the Pod has ended.
func (w *worker) finish(ctx context.Context, c *core.Container, ended core.ContainerStateTerminated, main bool) {
	w.mu.Lock()
	why, evicted := w.why, w.evicted
	w.mu.Unlock()
	w.say(ctx, func(s *core.PodStatus) {
		s.Phase = core.PodSucceeded
		if ended.ExitCode != 0 {
			s.Phase = core.PodFailed
		}
		status := core.ContainerStatus{Name: c.Name, Image: c.Image, State: core.ContainerState{Terminated: &ended}}
		if main {
			s.ContainerStatuses = []core.ContainerStatus{status}
		} else {
			s.InitContainerStatuses = []core.ContainerStatus{status}
		}
		setCondition(s, core.PodCondition{Type: core.PodReady, Status: core.ConditionFalse, Reason: "PodCompleted"})
		switch why {
		case "Evicted":
			s.Phase, s.Reason, s.Message = core.PodFailed, why, evicted
			setCondition(s, core.PodCondition{
				Type: core.DisruptionTarget, Status: core.ConditionTrue, Reason: core.PodReasonTerminationByKubelet, Message: evicted,
			})
		case "DeadlineExceeded":
			s.Phase, s.Reason, s.Message = core.PodFailed, why, "Pod was active on the node longer than the specified deadline"
		}
	})
}

// fail writes that the Pod has ended without its container having been started.
func (w *worker) fail(ctx context.Context, reason, message string) {
	w.mu.Lock()
	why := w.why
	w.mu.Unlock()
	if why == "DeadlineExceeded" {
		reason, message = why, "Pod was active on the node longer than the specified deadline"
	}
	w.say(ctx, func(s *core.PodStatus) {
		s.Phase, s.Reason, s.Message = core.PodFailed, reason, message
	})
}

func (w *worker) waiting(reason, message string) core.ContainerStatus {
	c := w.pod.Spec.Containers[0]
	return core.ContainerStatus{Name: c.Name, Image: c.Image, State: core.ContainerState{
		Waiting: &core.ContainerStateWaiting{Reason: reason, Message: message},
	}}
}

// hold says for what the container waits, until ready says that it need no longer wait.
func (w *worker) hold(ctx context.Context, ready func() (reason, message string)) error {
	said := ""
	for attempt := 0; ; attempt++ {
		reason, message := ready()
		if reason == "" {
			return nil
		}
		if reason == "ErrImagePull" && attempt > 0 {
			reason, message = "ImagePullBackOff", "Back-off pulling image: "+message
		}
		if said != reason {
			said = reason
			w.say(ctx, func(s *core.PodStatus) { s.ContainerStatuses = []core.ContainerStatus{w.waiting(reason, message)} })
			event := "Failed"
			if reason == "ContainerCreating" {
				event = "FailedMount"
			}
			w.k.event(ctx, w.pod, core.EventTypeWarning, event, message)
		}
		w.mu.Lock()
		killed := w.killed
		w.mu.Unlock()
		if killed {
			return errStopped
		}
		select {
		case <-w.changed:
			return errStopped
		case <-ctx.Done():
			return errStopped
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// say writes the status until that succeeds, or the Pod is gone.
func (w *worker) say(ctx context.Context, change func(*core.PodStatus)) {
	for ctx.Err() == nil {
		err := w.k.update(ctx, w.pod, change)
		if err == nil {
			return
		}
		w.k.log.Warn("status was not written", "pod", w.pod.Name, "err", err)
		time.Sleep(200 * time.Millisecond)
	}
}

func (w *worker) logFile(name string) string {
	return filepath.Join(w.k.dir, "logs", w.pod.Namespace, w.pod.Name, fmt.Sprintf("%s.log", filepath.Base(name)))
}
