package ecs

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

const (
	// What is starting or ending is looked at more often than what runs: an account has some
	// twenty of these calls in a second, for everybody.
	startPace, runPace, idlePace = 2 * time.Second, 6 * time.Second, 20 * time.Second
	// leastPace is between two looks, whatever happens.
	leastPace = time.Second
	// mostPause is between two looks at an API that fails or throttles.
	mostPause = time.Minute
	// describedAtOnce is what one call takes.
	describedAtOnce = 100
)

// Run polls what becomes of our tasks until ctx is done.
func (t *Tasks) Run(ctx context.Context) error {
	pause := startPace
	for {
		wake, err := t.seen.started.wait(), t.Look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			pause = t.seen.pace()
		} else {
			t.opts.Logger.DebugContext(ctx, "tasks were not looked at", "runner", t.opts.Runner.Name, "err", err)
			pause, wake = min(max(2*pause, runPace), mostPause), nil
		}
		if !rest(ctx, leastPace, nil) || !rest(ctx, jittered(pause-leastPace), wake) {
			return nil
		}
	}
}

// rest waits for a while, or until it is woken; false if ctx is done.
func rest(ctx context.Context, pause time.Duration, wake <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-time.After(pause):
	}
	return true
}

// jittered keeps replicas from asking all at the same moment.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.4*float64(d)) //nolint:gosec // nothing secret
}

// Look asks once what became of our tasks, and stops those that exist for too long.
func (t *Tasks) Look(ctx context.Context) error {
	err := t.look(ctx)
	if ctx.Err() != nil {
		return err
	}
	t.seen.lookedAt(err)
	for _, arn := range t.seen.late(time.Now()) {
		if err := t.stop(ctx, arn, stoppedAsLate); err != nil {
			t.opts.Logger.WarnContext(ctx, "task that is too old was not stopped", "runner", t.opts.Runner.Name, "task", nameOf(arn), "err", err)
		}
	}
	return err
}

func (t *Tasks) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*callTime)
	defer cancel()
	var listed []string
	for _, status := range []types.DesiredStatus{types.DesiredStatusRunning, types.DesiredStatusStopped} {
		pages := ecs.NewListTasksPaginator(t.client, &ecs.ListTasksInput{
			Cluster: t.cluster(), Family: aws.String(t.family()), DesiredStatus: status,
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return explain("list tasks", err)
			}
			listed = append(listed, page.TaskArns...)
		}
	}
	for some := range slices.Chunk(t.seen.toDescribe(listed), describedAtOnce) {
		out, err := t.client.DescribeTasks(ctx, &ecs.DescribeTasksInput{
			Cluster: t.cluster(), Tasks: some, Include: []types.TaskField{types.TaskFieldTags},
		})
		if err != nil {
			return explain("look at tasks", err)
		}
		t.seen.took(out.Tasks, true)
		var missing []string
		for _, f := range out.Failures {
			if aws.ToString(f.Reason) == "MISSING" {
				missing = append(missing, aws.ToString(f.Arn))
			}
		}
		t.seen.missing(missing)
	}
	return nil
}
