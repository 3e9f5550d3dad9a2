package offline

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/authoring"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// laptopEngine asks the engine of this machine about root modules.
type laptopEngine struct {
	executor *runner.Executor
	now      func() time.Time
}

var _ authoring.Engine = (*laptopEngine)(nil)

// NewLaptopEngine returns the engine of this machine, with the environment of the person.
func NewLaptopEngine(opts runner.ExecutorOptions, getenv func(string) string, now func() time.Time) (*laptopEngine, error) {
	work, err := workFolder(getenv)
	if err != nil {
		return nil, err
	}
	opts.WorkDir, opts.Engines.Env = work, environment()
	executor, err := runner.NewExecutor(opts)
	if err != nil {
		return nil, err
	}
	return &laptopEngine{executor: executor, now: now}, nil
}

// Validate implements authoring.Engine.
func (e *laptopEngine) Validate(ctx context.Context, doc document.Document, root *templates.Root) error {
	_, err := e.execute(ctx, doc, root, e.executor.Validate)
	return err
}

// Plan implements authoring.Engine.
func (e *laptopEngine) Plan(ctx context.Context, doc document.Document, root *templates.Root) (holdfast.Counts, error) {
	session, err := e.execute(ctx, doc, root, e.executor.Execute)
	if err != nil {
		return holdfast.Counts{}, err
	}
	plan, err := session.plan()
	return plan.Counts, err
}

func (e *laptopEngine) execute(
	ctx context.Context, doc document.Document, root *templates.Root,
	run func(context.Context, protocol.Assignment, runner.Session) protocol.Result,
) (*laptopSession, error) {
	session, err := newLaptopSession(io.Discard, root, "")
	if err != nil {
		return nil, err
	}
	defer session.close()
	env := map[string]string{}
	if len(root.Secrets) > 0 {
		// Nobody has the values here, and nothing depends on them.
		for name := range root.Secrets {
			env["TF_VAR_"+name] = "placeholder"
		}
		if session.bundle, err = withoutFile(session.bundle, path.Join(root.Dir, rootmodule.SecretFile)); err != nil {
			return nil, fmt.Errorf("bundle root module: %w", err)
		}
		session.digest = holdfast.DigestOf(session.bundle)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	id := holdfast.NewID("laptop", e.now())
	result := run(ctx, protocol.Assignment{
		AttemptRef: holdfast.AttemptRef{Run: id, Attempt: 1},
		Kind:       holdfast.RunPlan, Cluster: doc.Cluster.Name, Deadline: e.now().Add(time.Hour),
		Bundle: session.digest, Dir: root.Dir, SourceDigest: root.Digest,
		FingerprintKey: key,
		EngineChoice:   protocol.EngineChoice{Engine: doc.Cluster.Engine},
		AssignedEnv:    protocol.AssignedEnv{Env: env},
		AssignedState: protocol.AssignedState{
			OwnState:      root.OwnState,
			StateLocation: id,
		},
	}, session)
	if f := result.Failure; f != nil {
		return nil, engineFault(f)
	}
	return session, nil
}

// noProvider is what engines say when a provider cannot be had here, which is not
// a fault of the template.
var noProvider = regexp.MustCompile(`(?i)failed to query available provider packages|failed to install provider|could not connect to|was not found in any of the search locations|failed to download module|could not download module`)

// wrongSource is what they say when there is no such provider anywhere.
var wrongSource = regexp.MustCompile(`(?i)does not have a provider named|no available releases match|invalid provider source`)

func engineFault(f *holdfast.Failure) error {
	text := f.Summary
	if f.Detail != "" && !strings.Contains(f.Summary, f.Detail) {
		text += "\n" + f.Detail
	}
	missing := f.Step == "prepare" && (f.Cause == holdfast.CauseNoEngine || f.Cause == holdfast.CauseDownloadFailed || f.Transient) ||
		f.Step == "init" && (f.Transient || noProvider.MatchString(text)) && !wrongSource.MatchString(text)
	if missing {
		return fmt.Errorf("%w: %s", authoring.ErrNotAtHand, table.Shorten(text, 240))
	}
	var lines []string
	for _, d := range f.Diagnostics {
		if d.Severity == "error" {
			lines = append(lines, diagnosticLine(d))
		}
	}
	if len(lines) == 0 {
		return errors.New(text)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// diagnosticLine is what the engine says is wrong, where it is in the template's
// repository.
func diagnosticLine(d holdfast.Diagnostic) string {
	text := d.Summary
	if d.Detail != "" {
		text += ": " + d.Detail
	}
	file := strings.TrimPrefix(strings.TrimPrefix(d.File, "../"), "template/") // where a bundle has it
	if file == "" {
		return text
	}
	return fmt.Sprintf("%s:%d: %s", file, d.Line, text)
}

// withoutFile copies a bundle without one of its files.
func withoutFile(bundle []byte, name string) ([]byte, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(bundle))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	from, to := tar.NewReader(zipped), tar.NewWriter(zip)
	for {
		head, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if head.Name == name {
			continue
		}
		if err := to.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := io.Copy(to, from); err != nil { //nolint:gosec // we made it ourselves
			return nil, err
		}
	}
	err = errors.Join(to.Close(), zip.Close())
	return out.Bytes(), err
}
