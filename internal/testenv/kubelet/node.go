//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// kubelet is the stand-in.
type kubelet struct {
	options
	client kubernetes.Interface
	log    *slog.Logger

	mu      sync.Mutex
	workers map[string]*worker // by the UID of their Pods
}

// register makes the node, as a kubelet does when it starts.
func (k *kubelet) register(ctx context.Context, port int32) error {
	node := &core.Node{ObjectMeta: meta.ObjectMeta{Name: k.node, Labels: map[string]string{
		"kubernetes.io/hostname": k.node, "kubernetes.io/os": "linux",
	}}}
	_, err := k.client.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for {
		if node, err = k.client.CoreV1().Nodes().Get(ctx, k.node, meta.GetOptions{}); err != nil {
			return err
		}
		if err = k.describe(ctx, node, port); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// describe says what the node has, and that it is ready.
func (k *kubelet) describe(ctx context.Context, node *core.Node, port int32) error {
	room := core.ResourceList{
		core.ResourceCPU: resource.MustParse("64"), core.ResourceMemory: resource.MustParse("64Gi"), core.ResourcePods: resource.MustParse("500"),
	}
	node.Status = core.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses:       []core.NodeAddress{{Type: core.NodeInternalIP, Address: "127.0.0.1"}, {Type: core.NodeHostName, Address: k.node}},
		DaemonEndpoints: core.NodeDaemonEndpoints{KubeletEndpoint: core.DaemonEndpoint{Port: port}},
		NodeInfo:        core.NodeSystemInfo{KubeletVersion: "v1.33.13", OperatingSystem: "linux"},
		Conditions: []core.NodeCondition{{
			Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: meta.Now(), LastTransitionTime: meta.Now(),
		}},
	}
	_, err := k.client.CoreV1().Nodes().UpdateStatus(ctx, node, meta.UpdateOptions{})
	return err
}

// stayReady renews the node's lease, and says again that it is ready where somebody has
// said otherwise.
func (k *kubelet) stayReady(ctx context.Context) error {
	leases := k.client.CoordinationV1().Leases("kube-node-lease")
	for {
		now, seconds := meta.NewMicroTime(time.Now()), int32(40)
		lease, err := leases.Get(ctx, k.node, meta.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, err = leases.Create(ctx, &coordination.Lease{
				ObjectMeta: meta.ObjectMeta{Name: k.node},
				Spec:       coordination.LeaseSpec{HolderIdentity: &k.node, LeaseDurationSeconds: &seconds, RenewTime: &now},
			}, meta.CreateOptions{})
		case err == nil:
			lease.Spec.RenewTime = &now
			_, err = leases.Update(ctx, lease, meta.UpdateOptions{})
		}
		if err == nil {
			err = k.sayReady(ctx)
		}
		if err != nil && ctx.Err() == nil {
			k.log.Warn("lease was not renewed", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(3 * time.Second):
		}
	}
}

func (k *kubelet) sayReady(ctx context.Context) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.node, meta.GetOptions{})
	if err != nil {
		return err
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type == core.NodeReady && c.Status != core.ConditionTrue {
			c.Status, c.Reason, c.LastHeartbeatTime, c.LastTransitionTime = core.ConditionTrue, "KubeletReady", meta.Now(), meta.Now()
			_, err = k.client.CoreV1().Nodes().UpdateStatus(ctx, node, meta.UpdateOptions{})
			return err
		}
	}
	return nil
}

// fits says why a Pod cannot be bound to the node; empty if it can.
func (k *kubelet) fits(pod *core.Pod) string {
	for key, value := range pod.Spec.NodeSelector {
		if (key != "kubernetes.io/hostname" || value != k.node) && (key != "kubernetes.io/os" || value != "linux") {
			return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
		}
	}
	for _, c := range pod.Spec.Containers {
		if c.Resources.Requests.Cpu().Value() > 64 {
			return "0/1 nodes are available: 1 Insufficient cpu."
		}
		if limit := resource.MustParse("64Gi"); c.Resources.Requests.Memory().Cmp(limit) > 0 {
			return "0/1 nodes are available: 1 Insufficient memory."
		}
	}
	return ""
}

// schedule binds a Pod to the node, or says why that cannot be.
func (k *kubelet) schedule(ctx context.Context, pod *core.Pod) error {
	if why := k.fits(pod); why != "" {
		for _, c := range pod.Status.Conditions {
			if c.Type == core.PodScheduled && c.Reason == core.PodReasonUnschedulable {
				return nil
			}
		}
		k.event(ctx, pod, core.EventTypeWarning, "FailedScheduling", why)
		return k.update(ctx, pod, func(status *core.PodStatus) {
			setCondition(status, core.PodCondition{
				Type: core.PodScheduled, Status: core.ConditionFalse, Reason: core.PodReasonUnschedulable, Message: why,
			})
		})
	}
	err := k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &core.Binding{
		ObjectMeta: meta.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: core.ObjectReference{Kind: "Node", Name: k.node},
	}, meta.CreateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (k *kubelet) event(ctx context.Context, pod *core.Pod, kind, reason, message string) {
	_, err := k.client.CoreV1().Events(pod.Namespace).Create(ctx, &core.Event{
		ObjectMeta: meta.ObjectMeta{GenerateName: pod.Name + "."},
		InvolvedObject: core.ObjectReference{
			Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		},
		Type: kind, Reason: reason, Message: message, Count: 1,
		Source: core.EventSource{Component: "kubelet", Host: k.node}, FirstTimestamp: meta.Now(), LastTimestamp: meta.Now(),
	}, meta.CreateOptions{})
	if err != nil && ctx.Err() == nil {
		k.log.Warn("event was not written", "pod", pod.Name, "err", err)
	}
}

// listen serves the logs of containers, as the API server asks for them.
func (k *kubelet) listen() (port int32, serve func(context.Context) error, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return 0, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return 0, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	server := &http.Server{
		Handler: http.HandlerFunc(k.serveLog), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, //nolint:gosec // on loopback
	}
	serve = func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
	return int32(l.Addr().(*net.TCPAddr).Port), serve, nil //nolint:gosec // a port
}

// serveLog answers GET /containerLogs/NAMESPACE/POD/CONTAINER.
func (k *kubelet) serveLog(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "containerLogs" {
		http.NotFound(w, r)
		return
	}
	text, err := os.ReadFile(filepath.Join(k.dir, "logs", parts[1], parts[2], filepath.Base(parts[3])+".log"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(text)
}
