// Units of Terragrunt: their root module is made first.

package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
	"github.com/holdfast-dev/holdfast/runner/terragrunt"
	"github.com/holdfast-dev/holdfast/runner/workspace"
)

// unit is what Terragrunt rendered.
type unit struct {
	digest   holdfast.Digest // of files and of values of variables
	requires string          // constraint of the engine's version, in addition to the code's
}

// rendering has Terragrunt make the root module of a unit. The bundle that it becomes takes
// the place of the one that was fetched: all else is as with any other root module.
type rendering struct {
	*attempt

	program engine.Binary
	command terragrunt.Command
	made    terragrunt.Rendered
}

// renderUnit makes the root module if the bundle is that of a unit.
func (t *attempt) renderUnit(ctx context.Context) error {
	marker := filepath.Join(t.root, rootmodule.UnitFile)
	if _, err := os.Lstat(marker); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.Remove(marker); err != nil {
		return fmt.Errorf("lay out unit: %w", err)
	}
	program, err := t.exec.engines.ChooseTerragrunt(ctx, terragrunt.Versions, t.root, t.bundle)
	if err != nil {
		return err
	}
	t.Say("using terragrunt %s to render %s", program.Version, t.a.Dir)
	r := &rendering{attempt: t, program: program, command: terragrunt.Command{
		Program: program.Path, Unit: t.seen(t.root), Downloads: t.seen(filepath.Join(t.work, downloadsDir)),
	}}
	return r.render(ctx)
}

const (
	downloadsDir = "terragrunt" // of a workspace, in which Terragrunt makes the root module
	maxAnswer    = 16 << 20     // bytes that it prints for us
)

func (r *rendering) render(ctx context.Context) error {
	if err := r.give(ctx); err != nil {
		return err
	}
	located, err := r.ask(ctx, r.command.Locate())
	if err != nil {
		return err
	}
	if _, err := r.ask(ctx, r.command.Make()); err != nil {
		return err
	}
	answer, err := r.ask(ctx, r.command.Render())
	if err != nil {
		return err
	}
	below, root, err := r.command.Module(located)
	if err == nil {
		r.made, err = terragrunt.ReadRendered(answer)
	}
	if err != nil {
		return &failure.Error{Cause: holdfast.CauseInvalidConfiguration, Err: err}
	}
	if r.a.OwnState && r.made.Backend != "" {
		return elsewhere()
	}
	digest, err := r.pack(ctx, below, root)
	if err != nil {
		return err
	}
	return r.use(ctx, root, digest)
}

// ask starts Terragrunt, and returns what it prints.
func (r *rendering) ask(ctx context.Context, args []string) ([]byte, error) {
	answer, said := journal.NewBounded(maxAnswer), journal.NewExcerpt(1<<20)
	env := r.env()
	r.command.Environment(env)
	err := r.sandboxed(ctx, r.identify(sandbox.Command{
		Path: r.program.Path, Dir: r.command.Unit, Env: env, Args: args, Mounts: r.mounts(env),
		Stdout: answer, Stderr: io.MultiWriter(r.Log, said),
	}))
	if err == nil {
		var printed []byte
		if printed, err = answer.Bytes(); err == nil {
			return printed, nil
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var exit *failure.ExitError
	if !errors.As(err, &exit) {
		return nil, &failure.Error{Cause: holdfast.CauseWorkspaceFailed, Transient: true, Err: fmt.Errorf("terragrunt %s: %w", args[0], err)}
	}
	e := failure.OfEngine("terragrunt "+args[0], said.String(), err)
	if e.Exit = exit; e.Cause == holdfast.CauseEngineFailed {
		e.Cause = holdfast.CauseInvalidConfiguration
	}
	e.LimitHit(exit)
	return nil, e
}

// pack keeps what Terragrunt made as the attempt's bundle.
func (r *rendering) pack(ctx context.Context, below, root string) (holdfast.Digest, error) {
	made := filepath.Join(r.work, downloadsDir, filepath.FromSlash(below))
	name := filepath.Join(r.dir, bundleFile)
	file, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", fmt.Errorf("keep the rendered root module: %w", err)
	}
	p := terragrunt.Pack{Dir: made, Root: root, Limit: r.exec.opts.Limits.Bundle, Open: func(name string) (io.ReadCloser, error) {
		return r.openLeft(filepath.Join(made, filepath.FromSlash(name)), r.exec.opts.Limits.Bundle)
	}}
	if nulls := r.made.NullValues(); nulls != nil {
		p.Files = map[string][]byte{terragrunt.NullsFile: nulls}
	}
	digest, err := p.Write(ctx, file)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return "", tooLarge(fmt.Errorf("keep the rendered root module: %w", err))
	}
	return digest, nil
}

// use lays out the root module that was made.
func (r *rendering) use(ctx context.Context, root string, digest holdfast.Digest) (err error) {
	r.a.Env = maps.Clone(r.a.Env)
	if r.a.Env == nil {
		r.a.Env = map[string]string{}
	}
	d := holdfast.NewDigester("unit")
	d.Add(string(digest))
	for _, name := range slices.Sorted(maps.Keys(r.made.Inputs)) {
		d.Add(name, r.made.Inputs[name])
		key := modulecode.VariablePrefix + name
		if _, given := r.a.Env[key]; !given { // as Terragrunt does
			r.a.Env[key] = r.made.Inputs[name]
		}
	}
	r.unit = unit{digest: d.Digest(), requires: r.made.Engine}
	r.a.Dir, r.a.Bundle = root, r.unit.digest
	r.space.a.Env, r.space.a.Bundle = r.a.Env, r.unit.digest
	r.space.a.Dir = renderedRoot + root // what is in it may be of another repository
	if r.root, err = workspace.Inside(r.bundle, root); err != nil {
		return &failure.Error{Cause: holdfast.CauseInvalidConfiguration, Err: fmt.Errorf("rendered root module: %w", err)}
	}
	return r.layOut(ctx)
}

// elsewhere is why a unit is not planned if its state is somewhere that no
// configuration names.
func elsewhere() error {
	return &failure.Error{
		Cause: holdfast.CauseInvalidConfiguration, Err: terragrunt.ErrElsewhere,
		Hint: "write where the state is in a remote_state block of terragrunt.hcl, or of a file that it includes",
	}
}
