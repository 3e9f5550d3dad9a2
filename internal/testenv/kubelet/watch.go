//go:build linux

package main

import (
	"context"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watch has each Pod looked after, until ctx is done.
func (k *kubelet) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := k.watchOnce(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("watch has ended", "err", err)
			time.Sleep(200 * time.Millisecond)
		}
	}
	return nil
}

func (k *kubelet) watchOnce(ctx context.Context) error {
	pods := k.client.CoreV1().Pods(meta.NamespaceAll)
	list, err := pods.List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[string(list.Items[i].UID)] = true
		k.see(ctx, &list.Items[i])
	}
	k.forget(func(uid string) bool { return !there[uid] })
	w, err := pods.Watch(ctx, meta.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*core.Pod)
		switch {
		case !ok:
			return apierrors.FromObject(event.Object)
		case event.Type == watch.Deleted:
			k.forget(func(uid string) bool { return uid == string(pod.UID) })
		default:
			k.see(ctx, pod)
		}
	}
	return nil
}

// see takes in what a Pod is now.
func (k *kubelet) see(ctx context.Context, pod *core.Pod) {
	if pod.Spec.NodeName == "" {
		if pod.DeletionTimestamp != nil {
			return // the garbage collector's
		}
		if err := k.schedule(ctx, pod); err != nil && ctx.Err() == nil {
			k.log.Warn("Pod was not bound", "pod", pod.Name, "err", err)
		}
		return
	}
	k.mu.Lock()
	w := k.workers[string(pod.UID)]
	over := pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed
	if w == nil && !over && pod.DeletionTimestamp == nil {
		w = newWorker(k, pod)
		k.workers[string(pod.UID)] = w
		go w.run(ctx)
	}
	k.mu.Unlock()
	switch {
	case w != nil:
		w.saw(pod)
	case pod.DeletionTimestamp != nil:
		k.remove(ctx, pod)
	}
}

// forget ends the containers of Pods that are gone, as a kubelet does that sees that.
func (k *kubelet) forget(gone func(uid string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, w := range k.workers {
		if gone(uid) {
			w.kill("")
			delete(k.workers, uid)
		}
	}
}

// remove takes a Pod that has ended out of the API server.
func (k *kubelet) remove(ctx context.Context, pod *core.Pod) {
	none, uid := int64(0), pod.UID
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, meta.DeleteOptions{
		GracePeriodSeconds: &none, Preconditions: &meta.Preconditions{UID: &uid},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		k.log.Warn("Pod was not removed", "pod", pod.Name, "err", err)
	}
}

// update writes the status of a Pod, over whatever else was written meanwhile.
func (k *kubelet) update(ctx context.Context, pod *core.Pod, change func(*core.PodStatus)) error {
	for {
		now, err := k.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, meta.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
			return nil
		} else if err != nil {
			return err
		}
		change(&now.Status)
		_, err = k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, meta.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

func setCondition(status *core.PodStatus, c core.PodCondition) {
	c.LastTransitionTime = meta.Now()
	for i := range status.Conditions {
		if status.Conditions[i].Type == c.Type {
			status.Conditions[i] = c
			return
		}
	}
	status.Conditions = append(status.Conditions, c)
}
