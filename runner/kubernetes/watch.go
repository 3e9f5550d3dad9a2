package kubernetes

import (
	"context"
	"fmt"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"golang.org/x/sync/errgroup"
)

const (
	// watchTime is how long one watch is kept: then all is listed again, so that what it
	// has missed is not missed for longer.
	watchTime = 5 * time.Minute
	// leastPause and mostPause are between two tries at an API server that fails.
	leastPause, mostPause = 200 * time.Millisecond, 5 * time.Second
	// eventsEvery is how often the events of what does not start are read.
	eventsEvery = 2 * time.Second
	// mostEventPages bounds how many of them are read at a time, by the thousand.
	mostEventPages = 20
)

// Run watches what becomes of our Jobs until ctx is done.
func (c *Cluster) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.keepWatching(ctx, c.watchJobs) })
	g.Go(func() error { return c.keepWatching(ctx, c.watchPods) })
	g.Go(func() error { return c.readEvents(ctx) })
	return g.Wait()
}

// Look lists our Jobs and their Pods once, for whoever needs to know now.
func (c *Cluster) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := c.listJobs(ctx)
	if err == nil {
		_, err = c.listPods(ctx)
	}
	return err
}

// keepWatching watches one kind of objects again and again.
func (c *Cluster) keepWatching(ctx context.Context, once func(context.Context) error) error {
	pause := leastPause
	for {
		began := time.Now()
		err := once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			c.opts.Logger.DebugContext(ctx, "watch has ended", "runner", c.opts.Runner.Name, "err", err)
			pause = min(2*pause, mostPause)
		}
		if err == nil || time.Since(began) > mostPause {
			pause = leastPause
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// ours selects what this installation has started for this runner.
func (c *Cluster) ours() string {
	return fmt.Sprintf("%s=%s,%s=%s", labelInstallation, c.opts.Installation, labelRunner, labelValue(c.opts.Runner.Name))
}

func (c *Cluster) listJobs(ctx context.Context) (version string, err error) {
	list, err := c.calls.jobs.List(ctx, meta.ListOptions{LabelSelector: c.ours()})
	if err != nil {
		err = c.refusal("list Jobs", err)
		c.seen.failed("jobs", err)
		return "", err
	}
	c.seen.jobs(list.Items)
	c.seen.failed("jobs", nil)
	return list.ResourceVersion, nil
}

func (c *Cluster) listPods(ctx context.Context) (version string, err error) {
	list, err := c.calls.pods.List(ctx, meta.ListOptions{LabelSelector: c.ours()})
	if err != nil {
		err = c.refusal("list Pods", err)
		c.seen.failed("pods", err)
		return "", err
	}
	c.seen.pods(list.Items)
	c.seen.failed("pods", nil)
	return list.ResourceVersion, nil
}

func (c *Cluster) watchJobs(ctx context.Context) error {
	return c.watch(ctx, c.listJobs, c.calls.jobs.Watch, func(o runtime.Object, gone bool) {
		if job, ok := o.(*batch.Job); ok {
			c.seen.job(job, gone)
		}
	})
}

func (c *Cluster) watchPods(ctx context.Context) error {
	return c.watch(ctx, c.listPods, c.calls.pods.Watch, func(o runtime.Object, gone bool) {
		if pod, ok := o.(*core.Pod); ok {
			c.seen.sawPod(pod, gone)
		}
	})
}

// watch lists, and follows what changes from there on.
func (c *Cluster) watch(
	ctx context.Context, list func(context.Context) (string, error),
	open func(context.Context, meta.ListOptions) (watch.Interface, error), take func(o runtime.Object, gone bool),
) error {
	try, cancel := context.WithTimeout(ctx, callTime)
	version, err := list(try)
	cancel()
	if err != nil {
		return err
	}
	seconds := int64(watchTime / time.Second)
	ctx, cancel = context.WithTimeout(ctx, watchTime+callTime) // a connection may be dead without an error
	defer cancel()
	w, err := open(ctx, meta.ListOptions{
		LabelSelector: c.ours(), ResourceVersion: version, TimeoutSeconds: &seconds, AllowWatchBookmarks: true,
	})
	if err != nil {
		return c.refusal("watch", err)
	}
	defer w.Stop()
	// What a connection that hangs does not bring is listed.
	again := time.NewTicker(callTime)
	defer again.Stop()
	for {
		select {
		case event, ok := <-w.ResultChan():
			switch {
			case !ok:
				return nil
			case event.Type == watch.Error:
				return apierrors.FromObject(event.Object)
			case event.Type != watch.Bookmark:
				take(event.Object, event.Type == watch.Deleted)
			}
		case <-again.C:
			try, cancel := context.WithTimeout(ctx, callTime)
			_, err := list(try)
			cancel()
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// readEvents reads now and then what events say of Jobs and Pods that do not start.
func (c *Cluster) readEvents(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(eventsEvery):
		}
		if !c.seen.someWait() {
			continue
		}
		try, cancel := context.WithTimeout(ctx, callTime)
		_ = c.readWarnings(try) // what was read counts, and it is read again
		cancel()
	}
}

// readWarnings reads the warnings of the namespace, which is ours alone, part by part.
func (c *Cluster) readWarnings(ctx context.Context) error {
	opts := meta.ListOptions{FieldSelector: "type=" + core.EventTypeWarning, Limit: 1000}
	for range mostEventPages {
		list, err := c.calls.events.List(ctx, opts)
		if err != nil {
			return err
		}
		c.seen.events(list.Items)
		if opts.Continue = list.Continue; opts.Continue == "" {
			return nil
		}
	}
	return nil
}
