package offline

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// NewPlanCommand returns the command plan.
func NewPlanCommand(base *cli.App) *cobra.Command {
	a := &app{base}
	var f FleetFlags
	var opts runner.ExecutorOptions
	var state string
	c := &cobra.Command{
		Use:   "plan CLUSTER",
		Short: "Plan a cluster from files on this machine, without a server",
		Long: `Plan a cluster from files on this machine, without a server, with the engine and
the environment of this machine.

A state that the server keeps is not available here: without --state, the plan starts
with an empty state and shows all resources as new.`,
		Args: cli.Exactly(1, "the name of a cluster"),
		RunE: func(c *cobra.Command, args []string) error {
			doc, root, err := one(c.Context(), f, args[0])
			if err != nil {
				return err
			}
			return a.plan(c.Context(), doc, root, opts, state)
		},
	}
	addFleetFlags(c, &f, true)
	completeClusters(c, &f)
	AddEngineFlags(c, &opts)
	c.Flags().StringVar(&state, "state", "", "a state file to plan against, if the server keeps the cluster's state")
	return c
}

func (a *app) plan(ctx context.Context, doc document.Document, root *templates.Root, opts runner.ExecutorOptions, state string) error {
	work, err := workFolder(a.Getenv)
	if err != nil {
		return err
	}
	opts.WorkDir, opts.Engines.Env, opts.Secrets.Open = work, environment(), true
	executor, err := runner.NewExecutor(opts)
	if err != nil {
		return err
	}
	session, err := newLaptopSession(a.Err, root, state)
	if err != nil {
		return err
	}
	defer session.close()
	if root.OwnState && state == "" {
		fmt.Fprintln(a.Err, "The server keeps this cluster's state: this plan starts with an empty state.")
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	result := executor.Execute(ctx, protocol.Assignment{
		AttemptRef: holdfast.AttemptRef{Run: holdfast.NewID("laptop", a.Now()), Attempt: 1},
		Kind:       holdfast.RunPlan, Cluster: doc.Cluster.Name, Deadline: a.Now().Add(time.Hour),
		Bundle: session.digest, Dir: root.Dir, SourceDigest: root.Digest,
		FingerprintKey: key,
		EngineChoice:   protocol.EngineChoice{Engine: doc.Cluster.Engine},
		AssignedState:  protocol.AssignedState{OwnState: root.OwnState, StateLocation: root.StateLocation},
	}, session)
	return a.showPlan(result, session)
}

func (a *app) showPlan(result protocol.Result, s *laptopSession) error {
	if result.Failure != nil {
		return hint.New(
			fmt.Errorf("%s: %s\n%s", result.Failure.Step, result.Failure.Summary, result.Failure.Detail),
			result.Failure.Hint,
		)
	}
	plan, err := s.plan()
	if err != nil {
		return err
	}
	text := report.PlanText(plan)
	if a.Colour {
		text = report.ColourPlanText(plan)
	}
	fmt.Fprint(a.Out, text)
	return nil
}

// workFolder is where engines and prepared providers are kept between plans.
func workFolder(getenv func(string) string) (string, error) {
	cache := getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find cache folder: %w", err)
		}
		cache = filepath.Join(home, ".cache")
	}
	dir := filepath.Join(cache, "holdfast")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make cache folder: %w", err)
	}
	return dir, nil
}

// environment is all of ours: on a laptop the person's own credentials are the
// ones to plan with.
func environment() map[string]string {
	env := make(map[string]string)
	for _, pair := range os.Environ() {
		if name, value, ok := bytes.Cut([]byte(pair), []byte("=")); ok && len(name) > 0 {
			env[string(name)] = string(value)
		}
	}
	return env
}

// plan is what the run has planned.
func (s *laptopSession) plan() (holdfast.Plan, error) {
	document, err := plandoc.Decode(bytes.NewReader(s.artefacts[protocol.ArtefactDocument]))
	if err != nil {
		return holdfast.Plan{}, err
	}
	var info plandoc.Info
	if err := json.Unmarshal(s.artefacts[protocol.ArtefactInfo], &info); err != nil {
		return holdfast.Plan{}, fmt.Errorf("read plan: %w", err)
	}
	return plandiff.Plan(document, info), nil
}

// laptopSession is a runner.Session without a server.
type laptopSession struct {
	bundle   []byte
	digest   holdfast.Digest
	log      io.Writer
	server   *http.Server
	address  string
	password string

	mu        sync.Mutex
	artefacts map[string][]byte
}

var _ runner.Session = (*laptopSession)(nil)

func newLaptopSession(log io.Writer, root *templates.Root, stateFile string) (*laptopSession, error) {
	data, digest, err := root.Bundle()
	if err != nil {
		return nil, fmt.Errorf("bundle root module: %w", err)
	}
	s := &laptopSession{
		bundle: data, digest: digest, log: log, artefacts: make(map[string][]byte), password: rand.Text(),
	}
	var state []byte
	if stateFile != "" {
		if state, err = os.ReadFile(stateFile); err != nil {
			return nil, fmt.Errorf("read state: %w", err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the engine: %w", err)
	}
	s.address = "http://" + listener.Addr().String() + "/state"
	s.server = &http.Server{Handler: s.serveState(state), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(listener) }() // ends when close is called
	return s, nil
}

func (s *laptopSession) close() { _ = s.server.Close() }

// serveState is the engine's http backend, for reading only.
func (s *laptopSession) serveState(state []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != s.password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch {
		case r.Method == http.MethodGet && state == nil:
			w.WriteHeader(http.StatusNoContent)
		case r.Method == http.MethodGet:
			_, _ = w.Write(state)
		case r.Method == "LOCK" || r.Method == "UNLOCK":
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	})
}

func (s *laptopSession) Bundle(context.Context, holdfast.Digest) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s.bundle)), nil
}

func (s *laptopSession) StoredArtefact(context.Context, string, string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("artefact: %w", holdfast.ErrNotFound)
}

func (s *laptopSession) PutArtefact(_ context.Context, name string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.artefacts[name] = data
	return nil
}

func (s *laptopSession) Log() io.Writer { return s.log }

func (s *laptopSession) Step(string) {}

func (s *laptopSession) MayApply() bool { return false }

func (s *laptopSession) Unkept() error { return nil }

func (s *laptopSession) StateAddress() (addr, user, password string) {
	return s.address, "holdfast", s.password
}

// AddEngineFlags defines how engines are found, for agent and plan.
func AddEngineFlags(c *cobra.Command, opts *runner.ExecutorOptions) {
	flags := c.Flags()
	flags.StringSliceVar(&opts.Engines.Dirs, "engine-dir", nil, "folder with installed engines, searched before PATH")
	flags.BoolVar(&opts.Engines.Download, "download", true, "download an engine version that is not installed")
	flags.StringVar(&opts.Engines.TerraformMirror, "terraform-mirror", "", "where to download Terraform from")
	flags.StringVar(&opts.Engines.TofuMirror, "tofu-mirror", "", "where to download OpenTofu from")
	flags.StringVar(&opts.Engines.TerragruntMirror, "terragrunt-mirror", "", "where to download Terragrunt from")
	flags.StringVar(&opts.Engines.Validation, "validation", "signature", "how downloads are verified: signature or sha")
	flags.StringVar(&opts.Engines.CLIConfigFile, "cli-config", "", "the engines' own configuration file")
	flags.DurationVar(&opts.Waits.Grace, "engine-grace", time.Minute, "time between interrupting an engine and killing it")
}
