package kubeserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long a part may take to start on a busy machine.
const patience = 5 * time.Minute

// Tokens of the users that the server knows without asking anybody.
const (
	AdminToken = "token-of-the-administrator"
	nodeToken  = "token-of-the-kubelet"
	kcmToken   = "token-of-the-controllers" //nolint:gosec // of a server that lives as long as its tests
)

// Server is an API server with its controllers. Its methods are safe for concurrent use.
type Server struct {
	URL string          // https
	CA  []byte          // PEM: its own certificate
	Key *rsa.PrivateKey // signs the tokens of service accounts

	dir   string
	tools string // the folder of the programs
	flags []string
	mu    sync.Mutex
	parts []*part
}

// part is a process of the server.
type part struct {
	name string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
}

// Issuer is who the tokens of service accounts are issued by.
const Issuer = "https://kubernetes.default.svc"

// Start starts the server in an empty folder, with the programs in a folder of tools, and
// waits until it answers. Close ends it, as does the end of this process. Flags are further
// ones of the API server.
func Start(dir, tools string, flags ...string) (*Server, error) {
	s := &Server{dir: dir, tools: tools, flags: flags}
	for _, step := range []func() error{s.writeFiles, s.startEtcd, s.startControllers} {
		if err := step(); err != nil {
			s.Close()
			return nil, fmt.Errorf("start Kubernetes: %w", err)
		}
	}
	return s, nil
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Server) writeFiles() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	s.Key = key
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	users := strings.Join([]string{
		AdminToken + `,admin,admin,"system:masters"`,
		nodeToken + `,system:node:standin,node,"system:nodes"`,
		kcmToken + `,system:kube-controller-manager,kcm,"system:masters"`,
	}, "\n")
	return errors.Join(os.WriteFile(s.path("sa.key"), text, 0o600), os.WriteFile(s.path("tokens.csv"), []byte(users+"\n"), 0o600))
}

// startEtcd starts etcd and the API server. Between finding a free port and using it
// another process may take it: then both are started again.
func (s *Server) startEtcd() error {
	var err error
	for range 3 {
		if err = s.tryStart(); err == nil {
			return nil
		}
		s.Close()
	}
	return err
}

func (s *Server) tryStart() error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		return fmt.Errorf("etcd is not installed: %w", err)
	}
	clients, peers := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	err = s.run("etcd", etcd, "--data-dir="+s.path("etcd"), "--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers, "--unsafe-no-fsync")
	if err != nil {
		return err
	}
	if err := s.await("etcd", clients+"/health", nil); err != nil {
		return err
	}
	s.URL = fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	err = s.run("kube-apiserver", filepath.Join(s.tools, "kube-apiserver"), append(slices.Clone(s.flags), "--etcd-servers="+clients,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[2]), "--cert-dir="+s.path("certificates"),
		"--endpoint-reconciler-type=none", "--kubelet-preferred-address-types=InternalIP", "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer="+Issuer, "--service-account-key-file="+s.path("sa.key"), "--service-account-signing-key-file="+s.path("sa.key"),
		"--token-auth-file="+s.path("tokens.csv"), "--authorization-mode=Node,RBAC", "--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000")...)
	if err != nil {
		return err
	}
	certificate := s.path("certificates/apiserver.crt")
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if s.CA, err = os.ReadFile(certificate); err == nil && bytes.Contains(s.CA, []byte("END CERTIFICATE")) {
			break
		}
		if time.Now().After(end) || s.ended("kube-apiserver") {
			return fmt.Errorf("the API server makes no certificate: %s", s.logged("kube-apiserver"))
		}
	}
	return s.await("kube-apiserver", s.URL+"/readyz", s.CA)
}

func (s *Server) startControllers() error {
	if err := os.WriteFile(s.path("controllers.yaml"), s.Kubeconfig(kcmToken), 0o600); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	err = s.run("kube-controller-manager", filepath.Join(s.tools, "kube-controller-manager"), "--kubeconfig="+s.path("controllers.yaml"),
		"--controllers=job-controller,garbage-collector-controller,ttl-after-finished-controller,serviceaccount-controller,"+
			"root-ca-certificate-publisher-controller,namespace-controller,resourcequota-controller,pod-garbage-collector-controller,"+
			"node-lifecycle-controller,taint-eviction-controller",
		"--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]), "--cert-dir="+s.path("controllers"),
		"--root-ca-file="+s.path("certificates/apiserver.crt"), "--service-account-private-key-file="+s.path("sa.key"),
		"--kube-api-qps=500", "--kube-api-burst=1000", "--node-monitor-period=2s", "--node-monitor-grace-period=20s", "--resource-quota-sync-period=5s")
	if err != nil {
		return err
	}
	return s.await("kube-controller-manager", fmt.Sprintf("https://127.0.0.1:%d/healthz", ports[0]), nil)
}

// Kubeconfig is a kubeconfig for whoever has a token.
func (s *Server) Kubeconfig(token string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: %q, certificate-authority-data: %q}}]
users: [{name: test, user: {token: %q}}]
`, s.URL, base64.StdEncoding.EncodeToString(s.CA), token)
}

// Pause makes the API server hang: connections are accepted, and nothing is answered.
func (s *Server) Pause() { s.signal("kube-apiserver", syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.signal("kube-apiserver", syscall.SIGCONT) }

func (s *Server) signal(name string, sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.name == name {
			_ = p.cmd.Process.Signal(sig)
		}
	}
}

// Close ends the server.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := s.parts[i]
		_ = p.cmd.Process.Kill()
		<-p.done
		_ = p.log.Close()
	}
	s.parts = nil
	_ = os.RemoveAll(s.path("etcd"))
}

// Logs is what the parts have last written, for a test that has failed.
func (s *Server) Logs() string {
	var all strings.Builder
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		fmt.Fprintf(&all, "== %s\n%s\n", name, s.logged(name))
	}
	return all.String()
}

func (s *Server) logged(name string) string {
	text, _ := os.ReadFile(s.path(name + ".log"))
	return string(text[max(0, len(text)-8<<10):])
}

// run starts a process that ends with this one: the system sees to it, as long as the
// thread lives that has started it.
func (s *Server) run(name, program string, args ...string) error {
	log, err := os.Create(s.path(name + ".log"))
	if err != nil {
		return err
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.Env = append(os.Environ(), "ETCD_UNSUPPORTED_ARCH="+runtime.GOARCH, "GOGC=200", "HOME="+s.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		select {}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	p := &part{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, p)
	return nil
}

func (s *Server) ended(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.name == name {
			select {
			case <-p.done:
				return true
			default:
				return false
			}
		}
	}
	return true
}

// await waits until a part answers. Without a certificate any is taken.
func (s *Server) await(name, address string, ca []byte) error {
	trust := &tls.Config{InsecureSkipVerify: ca == nil} //nolint:gosec // of loopback, which this process has started
	if ca != nil {
		trust.RootCAs = x509.NewCertPool()
		trust.RootCAs.AppendCertsFromPEM(ca)
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: trust}}
	defer client.CloseIdleConnections()
	for end := time.Now().Add(patience); time.Now().Before(end) && !s.ended(name); time.Sleep(100 * time.Millisecond) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+AdminToken)
		answer, err := client.Do(req)
		if err != nil {
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer: %s", name, s.logged(name))
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
