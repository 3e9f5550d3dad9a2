package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"
)

// remote is where a mirror fetches from.
type remote struct {
	endpoint      *transport.Endpoint
	auth          Auth
	http          transport.Transport
	timeout, idle time.Duration
}

// session is one conversation with a remote: what it has, then at most one pack.
type session interface {
	// advertise returns the remote's refs; none if it is empty.
	advertise(ctx context.Context) (*packp.AdvRefs, error)
	// pack asks for objects. What it returns is still wrapped in the side band
	// if req says so.
	pack(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error)
	close() error
}

// pushSession is one conversation with a remote for a push: what it has, then at most
// one push.
type pushSession interface {
	advertise(ctx context.Context) (*packp.AdvRefs, error)
	// push sends commands and a pack, and returns what became of them; nil if the
	// remote did not say.
	push(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error)
	close() error
}

// open begins a session. ctx bounds it as a whole.
func (r *remote) open(ctx context.Context) (session, error) {
	switch r.endpoint.Protocol {
	case "file":
		return openFile(ctx, uploadPack, r.endpoint.Path)
	case "ssh":
		return openSSH(ctx, uploadPack, r.endpoint, r.auth.SSH)
	default:
		return r.openHTTP(ctx)
	}
}

// openPush begins a session for a push. ctx bounds it as a whole.
func (r *remote) openPush(ctx context.Context) (pushSession, error) {
	switch r.endpoint.Protocol {
	case "file":
		return openFile(ctx, receivePack, r.endpoint.Path)
	case "ssh":
		return openSSH(ctx, receivePack, r.endpoint, r.auth.SSH)
	}
	auth, err := r.basic(ctx)
	if err != nil {
		return nil, err
	}
	endpoint := *r.endpoint
	inner, err := r.http.NewReceivePackSession(&endpoint, auth)
	if err != nil {
		return nil, err
	}
	return &httpPush{inner: inner}, nil
}

// What is run on the other end.
const (
	uploadPack  = "upload-pack"
	receivePack = "receive-pack"
)

// httpPush speaks smart HTTP through go-git.
type httpPush struct{ inner transport.ReceivePackSession }

func (s *httpPush) advertise(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.inner.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return packp.NewAdvRefs(), nil
	}
	return refs, err
}

func (s *httpPush) push(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	return s.inner.ReceivePack(ctx, req)
}

func (s *httpPush) close() error { return s.inner.Close() }

// httpSession speaks smart HTTP through go-git.
type httpSession struct {
	inner transport.UploadPackSession
}

// basic returns the credential for a session over HTTP; nil: none is sent.
func (r *remote) basic(ctx context.Context) (transport.AuthMethod, error) {
	if r.auth.Basic == nil {
		return nil, nil
	}
	user, password, err := r.auth.Basic(ctx)
	if err != nil {
		return nil, fmt.Errorf("get credentials: %w", err)
	}
	return &githttp.BasicAuth{Username: user, Password: password}, nil
}

func (r *remote) openHTTP(ctx context.Context) (session, error) {
	auth, err := r.basic(ctx)
	if err != nil {
		return nil, err
	}
	endpoint := *r.endpoint // a redirect changes it, for this session only
	inner, err := r.http.NewUploadPackSession(&endpoint, auth)
	if err != nil {
		return nil, err
	}
	return &httpSession{inner: inner}, nil
}

func (s *httpSession) advertise(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.inner.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return packp.NewAdvRefs(), nil
	}
	return refs, err
}

func (s *httpSession) pack(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	return s.inner.UploadPack(ctx, req)
}

func (s *httpSession) close() error { return s.inner.Close() }

// guard bounds what a failing server can make us read, and distinguishes a web page
// from an answer of Git.
type guard struct{ base http.RoundTripper }

const (
	maxErrorBody = 512
	// maxRefs bounds a remote's list of refs in bytes: it is held in memory, and has
	// room for more than a million names.
	maxRefs = 128 << 20
)

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	kind := resp.Header.Get("Content-Type")
	switch {
	case resp.StatusCode >= 400 && strings.HasPrefix(kind, "text/html"):
		resp.Body.Close()
		resp.Body = http.NoBody // a page says nothing in an error
	case resp.StatusCode >= 400:
		resp.Body = limitedBody{io.LimitReader(resp.Body, maxErrorBody), resp.Body}
	case resp.StatusCode == http.StatusOK && !strings.HasPrefix(kind, "application/x-git-"):
		resp.Body.Close()
		return nil, &notGitError{contentType: kind}
	case strings.HasSuffix(kind, "-advertisement"):
		resp.Body = limitedBody{io.LimitReader(resp.Body, maxRefs), resp.Body}
	}
	return resp, nil
}

type limitedBody struct {
	io.Reader
	io.Closer
}

// notGitError is an answer that succeeded and is not Git's: a login page, a
// proxy's apology.
type notGitError struct{ contentType string }

func (e *notGitError) Error() string {
	return fmt.Sprintf("server answered %q instead of Git's protocol", e.contentType)
}

// pipeSession speaks to a git-upload-pack or git-receive-pack through its
// standard streams.
type pipeSession struct {
	program string
	stdin   io.WriteCloser
	stdout  io.Reader
	stderr  *tail
	wait    func() error

	asked bool
	once  sync.Once
	err   error
}

// openFile runs Git's own program on a repository on disk: it knows every
// format that a repository can have, and packs while others write.
func openFile(ctx context.Context, program, path string) (*pipeSession, error) {
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s", transport.ErrRepositoryNotFound, path)
		}
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "git", program, path)
	cmd.WaitDelay = 5 * time.Second
	// Git needs its user's settings (safe.directory), nobody's secrets.
	cmd.Env = []string{"LC_ALL=C"}
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	s := &pipeSession{program: program, stderr: &tail{}, wait: cmd.Wait}
	cmd.Stderr = s.stderr
	var err error
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if s.stdout, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run git %s: %w", program, err)
	}
	return s, nil
}

// openSSH runs Git's program on a host that known_hosts vouches for.
func openSSH(ctx context.Context, program string, endpoint *transport.Endpoint, auth SSH) (*pipeSession, error) {
	addr := net.JoinHostPort(strings.Trim(endpoint.Host, "[]"), strconv.Itoa(sshPort(endpoint)))
	config, err := sshConfig(endpoint, auth, addr)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	// The handshake has no context: closing its connection ends it.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	client, err := newSSHClient(conn, addr, config)
	if err != nil {
		stop()
		_ = conn.Close()
		return nil, err
	}
	s, err := runOver(client, program, endpoint.Path)
	if err != nil {
		stop()
		_ = client.Close()
		return nil, err
	}
	wait := s.wait
	s.wait = func() error {
		defer stop()
		err := wait()
		_ = client.Close()
		return err
	}
	return s, nil
}

func sshPort(endpoint *transport.Endpoint) int {
	if endpoint.Port > 0 {
		return endpoint.Port
	}
	return gitssh.DefaultPort
}

func sshConfig(endpoint *transport.Endpoint, auth SSH, addr string) (*ssh.ClientConfig, error) {
	if _, err := os.Stat(auth.KnownHostsFile); err != nil {
		return nil, fmt.Errorf("read known_hosts: %w", err)
	}
	known, err := gitssh.NewKnownHostsDb(auth.KnownHostsFile)
	if err != nil {
		return nil, fmt.Errorf("read known_hosts: %w", err)
	}
	user := endpoint.User
	if user == "" {
		user = "git"
	}
	keys, err := gitssh.NewPublicKeysFromFile(user, auth.KeyFile, auth.Passphrase)
	if err != nil {
		return nil, fmt.Errorf("read SSH key: %w", err)
	}
	return &ssh.ClientConfig{
		User:            user,
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(keys.Signer)},
		HostKeyCallback: known.HostKeyCallback(),
		// Only algorithms that known_hosts can check: otherwise the host shows another
		// key.
		HostKeyAlgorithms: known.HostKeyAlgorithms(addr),
	}, nil
}

func newSSHClient(conn net.Conn, addr string, config *ssh.ClientConfig) (*ssh.Client, error) {
	c, channels, requests, err := ssh.NewClientConn(conn, addr, config)
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

func runOver(client *ssh.Client, program, path string) (*pipeSession, error) {
	run, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	s := &pipeSession{program: program, stderr: &tail{}, wait: run.Wait}
	run.Stderr = s.stderr
	if s.stdin, err = run.StdinPipe(); err != nil {
		return nil, err
	}
	if s.stdout, err = run.StdoutPipe(); err != nil {
		return nil, err
	}
	quoted := "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
	if err := run.Start("git-" + program + " " + quoted); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *pipeSession) advertise(context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	err := refs.Decode(io.LimitReader(s.stdout, maxRefs))
	switch {
	case err == nil:
		return refs, nil
	case errors.Is(err, packp.ErrEmptyAdvRefs):
		return packp.NewAdvRefs(), nil
	}
	s.asked = true // nobody listens
	if waited := s.close(); waited != nil {
		return nil, waited
	}
	return nil, err
}

func (s *pipeSession) pack(_ context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	s.asked = true
	if err := req.UploadRequest.Encode(s.stdin); err != nil {
		return nil, fmt.Errorf("send wants: %w", err)
	}
	if err := req.UploadHaves.Encode(s.stdin, true); err != nil {
		return nil, fmt.Errorf("send haves: %w", err)
	}
	if err := pktline.NewEncoder(s.stdin).EncodeString("done\n"); err != nil {
		return nil, fmt.Errorf("send done: %w", err)
	}
	if err := s.stdin.Close(); err != nil {
		return nil, err
	}
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(io.NopCloser(s.stdout)); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return resp, nil
}

func (s *pipeSession) push(_ context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	s.asked = true
	if err := req.Encode(s.stdin); err != nil {
		// Its last output says why the other end hung up.
		if closed := s.close(); closed != nil {
			err = closed
		}
		return nil, fmt.Errorf("send: %w", err)
	}
	if err := s.stdin.Close(); err != nil {
		return nil, err
	}
	report := packp.NewReportStatus()
	if err := report.Decode(s.stdout); err != nil {
		if closed := s.close(); closed != nil {
			err = closed
		}
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return report, nil
}

// close says goodbye if nothing was asked for, and waits for the other end.
func (s *pipeSession) close() error {
	s.once.Do(func() {
		if !s.asked {
			_, _ = s.stdin.Write(pktline.FlushPkt)
		}
		_ = s.stdin.Close()
		_, _ = io.Copy(io.Discard, s.stdout)
		s.err = s.wait()
		if text := s.stderr.String(); s.err != nil && text != "" {
			s.err = &commandError{program: s.program, text: text, err: s.err}
		}
	})
	return s.err
}

// commandError is what Git's program said before it gave up.
type commandError struct {
	program, text string
	err           error
}

func (e *commandError) Error() string {
	return fmt.Sprintf("git-%s: %s (%v)", e.program, e.text, e.err)
}

func (e *commandError) Unwrap() error { return e.err }

// tail keeps the beginning of what is written to it, for an error's text.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p[:min(len(p), max(0, maxErrorBody-t.buf.Len()))])
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(t.buf.String()), " ")
}

// watchdog ends a context once no data came for a while.
type watchdog struct {
	timer *time.Timer
	idle  time.Duration
}

var errStalled = errors.New("the remote stopped responding")

// watch returns a context that ends after timeout, or idle after the last touch.
func watch(ctx context.Context, timeout, idle time.Duration) (context.Context, *watchdog, context.CancelFunc) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(idle, func() { cancel(errStalled) })
	return ctx, &watchdog{timer: timer, idle: idle}, func() {
		timer.Stop()
		cancel(nil)
		stop()
	}
}

func (w *watchdog) touch() { w.timer.Reset(w.idle) }

// reader touches the watchdog whenever r gives something.
func (w *watchdog) reader(r io.Reader) io.Reader { return touchReader{r, w} }

type touchReader struct {
	r io.Reader
	w *watchdog
}

func (t touchReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if n > 0 {
		t.w.touch()
	}
	return n, err
}

// untilEnd stops the watchdog at the end of r: the time that its caller needs
// afterwards is not limited.
func (w *watchdog) untilEnd(r io.Reader) io.Reader { return endReader{r, w} }

type endReader struct {
	r io.Reader
	w *watchdog
}

func (e endReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil {
		e.w.timer.Stop()
	}
	return n, err
}
