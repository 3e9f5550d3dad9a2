package kubetest_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/holdfast-dev/holdfast/internal/testenv/cloudapi"
	"github.com/holdfast-dev/holdfast/internal/testenv/container"
	"github.com/holdfast-dev/holdfast/internal/testenv/kubeserver"
)

// patience is how long a test waits for something that has to happen; nothing is concluded
// from how long that takes.
const patience = 5 * time.Minute

// What all tests share.
var (
	dir     string             // others can pass through
	api     *kubeserver.Server // nil: it is not to be had here
	admin   client.Interface
	program string // the stand-in kubelet

	// who says whose tokens of clouds are; nobody's, unless a test asks.
	who cloudapi.Authenticator
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == container.StageCommand {
		fmt.Fprintln(os.Stderr, "stage:", container.Stage()) // it returns only if it fails
		os.Exit(128)
	}
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	tools := os.Getenv("HOLDFAST_TEST_PROVIDERS")
	if _, err := os.Stat(filepath.Join(tools, "kube-apiserver")); tools == "" || err != nil || testing.Short() {
		if os.Getenv("CI") == "true" && !testing.Short() {
			fmt.Fprintln(os.Stderr, "kube-apiserver is not there: make test-kubernetes builds it")
			return 1
		}
		return m.Run()
	}
	var err error
	if dir, err = os.MkdirTemp("", "holdfast-kubernetes"); err == nil {
		defer os.RemoveAll(dir)
		err = errors.Join(os.Chmod(dir, 0o755), build("kubelet", "./../testenv/kubelet"), os.MkdirAll(filepath.Join(dir, "image"), 0o755))
	}
	if err == nil {
		err = build("image/holdfast", "./../../cmd/holdfast")
	}
	if err == nil {
		program = filepath.Join(dir, "kubelet")
		if err = os.Mkdir(filepath.Join(dir, "server"), 0o755); err == nil {
			authenticator := httptest.NewServer(&who)
			defer authenticator.Close()
			api, err = kubeserver.Start(filepath.Join(dir, "server"), tools, webhook(authenticator.URL)...)
		}
	}
	if err == nil {
		defer api.Close()
		admin, err = clientOf(kubeserver.AdminToken)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, api.Logs())
	}
	return code
}

// webhook has the API server ask somebody about tokens that it does not know.
func webhook(address string) []string {
	file := filepath.Join(dir, "authenticator.yaml")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
		"users: [{name: a, user: {}}]\nclusters: [{name: a, cluster: {server: %q}}]\n", address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		panic(err)
	}
	return []string{
		"--authentication-token-webhook-config-file=" + file, "--authentication-token-webhook-version=v1", "--authentication-token-webhook-cache-ttl=1s",
	}
}

func build(name, from string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, filepath.FromSlash(name)), from)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	return nil
}

func clientOf(token string) (client.Interface, error) {
	return client.NewForConfig(&rest.Config{
		Host: api.URL, BearerToken: token, QPS: 500, Burst: 1000, TLSClientConfig: rest.TLSClientConfig{CAData: api.CA},
	})
}

// need skips a test where there is no API server; CI has one.
func need(t *testing.T) {
	t.Helper()
	if api == nil {
		t.Skip("kube-apiserver is not there: make test-kubernetes builds it")
	}
}

// node is a stand-in kubelet.
type node struct {
	t   *testing.T
	cmd *exec.Cmd
	log *bytes.Buffer
}

// images are what the stand-in knows: folders with a program named holdfast.
func images(t *testing.T) []string {
	t.Helper()
	args := []string{"--image", "holdfast:real=" + filepath.Join(dir, "image")}
	for name, script := range map[string]string{
		"ends": "exit 0", "fails": "echo it went wrong >&2; exit 3", "stays": "trap 'exit 0' TERM; while :; do sleep 0.1; done",
		"hogs":    "exec tail /dev/zero",
		"ignores": "trap '' TERM; while :; do touch /tmp/alive; sleep 0.1; done",
	} {
		folder := filepath.Join(t.TempDir(), name)
		err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "holdfast"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--image", "holdfast:"+name+"="+folder)
	}
	return args
}

// startNode starts the node of all tests of a server. It ends with the test.
func startNode(t *testing.T, name string) *node {
	t.Helper()
	need(t)
	work := t.TempDir()
	for at := work; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
	for file, text := range map[string][]byte{"ca.crt": api.CA, "token": []byte(kubeserver.AdminToken)} {
		if err := os.WriteFile(filepath.Join(work, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{
		"--server", api.URL, "--ca-file", filepath.Join(work, "ca.crt"), "--token-file", filepath.Join(work, "token"),
		"--node", name, "--dir", filepath.Join(work, "kubelet"),
	}
	n := &node{t: t, log: &bytes.Buffer{}, cmd: exec.Command(program, append(args, images(t)...)...)}
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := startBound(n.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = n.cmd.Process.Signal(syscall.SIGCONT)
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
		_ = n.cmd.Wait()
		_ = admin.CoreV1().Nodes().Delete(context.Background(), name, meta.DeleteOptions{})
		if t.Failed() {
			t.Logf("kubelet %s:\n%s", name, n.log)
		}
	})
	return n
}

// startBound starts a process that ends with this one: the system sees to it, as long as the
// thread lives that has started it.
func startBound(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		goruntime.LockOSThread()
		started <- cmd.Start()
		select {}
	}()
	return <-started
}

// silence stops the node: its containers run on, and nobody hears of them.
func (n *node) silence() { _ = n.cmd.Process.Signal(syscall.SIGSTOP) }

// space is a namespace for Jobs, made as deploy/kubernetes says.
type space struct {
	name  string
	token string // of the server's account, which has exactly the Role that is shipped
}

// newSpace makes a namespace of that name. It ends with the test.
func newSpace(t *testing.T, name string) space {
	t.Helper()
	ctx := t.Context()
	for _, o := range deployed(t, "runner-namespace.yaml", "runner-role.yaml") {
		var err error
		switch o := o.(type) {
		case *core.Namespace:
			o.Name = name
			_, err = admin.CoreV1().Namespaces().Create(ctx, o, meta.CreateOptions{})
		case *core.ServiceAccount:
			_, err = admin.CoreV1().ServiceAccounts(name).Create(ctx, inSpace(o, name).(*core.ServiceAccount), meta.CreateOptions{})
		case *rbac.Role:
			_, err = admin.RbacV1().Roles(name).Create(ctx, inSpace(o, name).(*rbac.Role), meta.CreateOptions{})
		case *rbac.RoleBinding:
			for i := range o.Subjects {
				o.Subjects[i].Namespace = name
			}
			_, err = admin.RbacV1().RoleBindings(name).Create(ctx, inSpace(o, name).(*rbac.RoleBinding), meta.CreateOptions{})
		default:
			err = fmt.Errorf("%T is not expected there", o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		none := int64(0)
		ctx := context.Background()
		_ = admin.CoreV1().Pods(name).DeleteCollection(ctx, meta.DeleteOptions{GracePeriodSeconds: &none}, meta.ListOptions{})
		_ = admin.CoreV1().Namespaces().Delete(ctx, name, meta.DeleteOptions{})
	})
	return space{name: name, token: tokenOf(t, name, "holdfast-server")}
}

func inSpace(o meta.Object, name string) meta.Object {
	o.SetNamespace(name)
	return o
}

// deployed are the objects of files of deploy/kubernetes, decoded strictly.
func deployed(t *testing.T, names ...string) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("../../deploy/kubernetes", name))
		if err != nil {
			t.Fatal(err)
		}
		docs := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
		for {
			doc := make([]byte, 64<<10)
			n, err := docs.Read(doc)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			o, _, err := decoder.Decode(doc[:n], nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, o)
		}
	}
	return all
}

func tokenOf(t *testing.T, namespace, account string) string {
	t.Helper()
	answer, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authentication.TokenRequest{}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

// until waits until something is so. It says what it has last seen if that never comes.
func until(t *testing.T, what string, is func() (bool, string)) {
	t.Helper()
	seen := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		ok, now := is()
		if ok {
			return
		}
		seen = now
	}
	t.Fatalf("%s: it never came to that: %s", what, strings.TrimSpace(seen))
}
