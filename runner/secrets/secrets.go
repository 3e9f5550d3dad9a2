package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// Limits of secret variables. What the engine's environment can hold is bounded
// by the kernel: 128 KiB a variable, and a quarter of the stack for all.
const (
	maxSecretFile  = 1 << 20  // bytes of rootmodule.SecretFile
	maxSecretRefs  = 1000     // in it
	maxSecretValue = 64 << 10 // bytes
	maxSecretTotal = 1 << 20  // bytes of all values
	secretLookUps  = 4        // at once
)

// secretError is why a secret variable has no value. Nothing in it is secret but
// what a store has said, which is redacted.
type secretError struct {
	err       error
	hint      string
	detail    string
	transient bool
}

// Options say where values of secret variables may come from.
type Options struct {
	// Open: whoever wrote the code has started us, as on a laptop. Secret
	// variables may come from the environment, where TF_VAR_ and a variable's name
	// goes before what its document says, and from any file. False: only from what
	// an assignment brings or allows.
	Open bool
	// Timeout is how long a secret store may take to answer; zero means 30 s.
	Timeout time.Duration
}

// Resolver looks up the values of one attempt's secret variables.
type Resolver struct {
	Assignment protocol.Assignment
	Opts       Options
	Env        map[string]string // that every engine gets
	Dir        string            // of the attempt: stores are asked in a folder in it
	Redactor   *redact.Redactor  // learns every value
	Say        func(format string, args ...any)
}

// Found are the values of secret variables, by the variables' names.
type Found struct {
	Values map[string]string
	Prints map[string]string // keyed hashes of the values
}

// Take looks up the values of the secret variables of the root module in a folder,
// each once for the whole attempt, and has them redacted from then on.
func (r *Resolver) Take(ctx context.Context, root string) (Found, error) {
	refs, err := readSecretRefs(root)
	if err != nil {
		return Found{}, &failure.Error{
			Cause: holdfast.CauseSecretUnavailable, Err: fmt.Errorf("read %s: %w", rootmodule.SecretFile, err),
			Hint: "the file says where the values of the secret variables are; it is made from the cluster's document",
		}
	}
	maps.DeleteFunc(refs, func(name string, _ rootmodule.SecretRef) bool { // whoever plans has put it there already
		value := r.Env[modulecode.VariablePrefix+name]
		r.Redactor.Add(modulecode.VariableSecrets(value)...)
		return r.Opts.Open && value != ""
	})
	if err := r.needCredentials(refs); err != nil {
		return Found{}, err
	}
	if len(refs) == 0 {
		return Found{}, nil
	}
	variables := map[rootmodule.SecretRef][]string{} // by where their values are
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		variables[refs[name]] = append(variables[refs[name]], name)
	}
	values, failed := r.lookUp(ctx, variables)
	if err := ctx.Err(); err != nil {
		return Found{}, err
	}
	if len(failed) > 0 {
		return Found{}, secretsFailed(failed)
	}
	found := Found{Values: map[string]string{}, Prints: map[string]string{}}
	total := 0
	for name, ref := range refs {
		found.Values[name] = values[ref]
		found.Prints[name] = plan.Hash(r.Assignment.FingerprintKey, "secret variable", name, values[ref])
		total += len(values[ref])
	}
	if total > maxSecretTotal {
		return Found{}, &failure.Error{
			Cause: holdfast.CauseSecretUnavailable, Err: fmt.Errorf("the secret variables have more than %d bytes in all", maxSecretTotal),
			Hint: "an environment holds no more: let the code read large secrets itself",
		}
	}
	r.Say("secret variables: %s", describeSecrets(refs))
	return found, nil
}

// needCredentials fails if there is a credential without a value that no secret
// variable of any cluster refers to: the engine, or a provider, is to have it.
func (r *Resolver) needCredentials(refs map[string]rootmodule.SecretRef) error {
	for _, name := range r.Assignment.Missing {
		referred := slices.Contains(r.Assignment.Referenced, name)
		for _, ref := range refs {
			referred = referred || ref.Env == name
		}
		if !referred {
			return &failure.Error{
				Cause: holdfast.CauseSecretUnavailable, Err: fmt.Errorf("credential %s could not be read", name),
				Hint: missingHint(name),
			}
		}
	}
	return nil
}

// missingHint says where to look for a credential, without the server's paths.
func missingHint(name string) string {
	return fmt.Sprintf("what credentials[].secrets.%s names in holdfast.yaml must be there; the server's log says more", name)
}

// lookUp returns the values by where they are, and what failed by variable.
func (r *Resolver) lookUp(
	ctx context.Context, variables map[rootmodule.SecretRef][]string,
) (found map[rootmodule.SecretRef]string, failed map[string]*secretError) {
	type answer struct {
		value string
		err   *secretError
	}
	refs := slices.Collect(maps.Keys(variables))
	answers := make([]answer, len(refs))
	var group errgroup.Group
	group.SetLimit(secretLookUps)
	for i, ref := range refs {
		group.Go(func() error {
			value, err := r.secret(ctx, ref)
			if err == nil {
				err = checkSecret(value)
			} else if ref.Store != "" && r.Opts.Open {
				err.hint = "set " + modulecode.VariablePrefix + variables[ref][0] + " in the environment"
			}
			r.Redactor.Add(modulecode.VariableSecrets(value)...)
			answers[i] = answer{value, err}
			return nil
		})
	}
	_ = group.Wait() // each says for itself how it went
	found, failed = map[rootmodule.SecretRef]string{}, map[string]*secretError{}
	for i, ref := range refs {
		found[ref] = answers[i].value
		for _, name := range variables[ref] {
			if answers[i].err != nil {
				failed[name] = answers[i].err
			}
		}
	}
	return found, failed
}

// secretsFailed makes one failure of what failed: one that is transient if
// all of it does.
func secretsFailed(failed map[string]*secretError) *failure.Error {
	names := slices.Sorted(maps.Keys(failed))
	e := &failure.Error{Cause: holdfast.CauseSecretUnavailable, Transient: true}
	var lines []string
	for _, name := range names {
		one := failed[name]
		line := fmt.Sprintf("secret variable %s: %v", name, one.err)
		if e.Err == nil || e.Transient && !one.transient { // the first that decides
			e.Err, e.Hint, e.Transient = errors.New(line), one.hint, one.transient
		}
		if one.detail != "" {
			line += "\n" + one.detail
		}
		lines = append(lines, line)
	}
	if len(lines) > 1 || failed[names[0]].detail != "" {
		e.Detail = failure.Head(strings.Join(lines, "\n"), failure.MaxDiagnosticDetail)
	}
	if len(names) > 1 {
		e.Err = fmt.Errorf("%w (and %d more have no value)", e.Err, len(names)-1)
	}
	return e
}

// describeSecrets says where the values come from.
func describeSecrets(refs map[string]rootmodule.SecretRef) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		words = append(words, fmt.Sprintf("%s (%s)", name, describeSecret(refs[name])))
	}
	return failure.Some(words)
}

func describeSecret(ref rootmodule.SecretRef) string {
	switch {
	case ref.Env != "":
		return "environment variable " + ref.Env
	case ref.File != "":
		return "file " + ref.File
	default:
		return "store " + ref.Store + ", key " + ref.Key
	}
}

// readSecretRefs reads where the secret variables of the root module in dir are;
// none if it has no such file.
func readSecretRefs(dir string) (map[string]rootmodule.SecretRef, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if _, err := root.Lstat(rootmodule.SecretFile); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	data, err := readSecret(root.OpenFile, rootmodule.SecretFile, maxSecretFile)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var refs map[string]rootmodule.SecretRef
	if err := dec.Decode(&refs); err != nil || dec.More() {
		return nil, errors.New("it is not the JSON of where secret variables are")
	}
	if len(refs) > maxSecretRefs {
		return nil, fmt.Errorf("more than %d variables", maxSecretRefs)
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if !holdfast.IsIdentifier(name) || len(name) > 256 {
			return nil, fmt.Errorf("%.100q is not a valid variable name", name)
		}
		if err := refs[name].Check(); err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
	}
	return refs, nil
}

// secret returns the value that ref points to.
func (r *Resolver) secret(ctx context.Context, ref rootmodule.SecretRef) (string, *secretError) {
	switch {
	case ref.Env != "":
		return r.secretFromEnv(ref.Env)
	case ref.File != "":
		return r.secretFromFile(ref.File)
	default:
		return r.secretFromStore(ctx, ref)
	}
}

// secretFromEnv looks in the credentials of the run, never in the environment of
// the agent.
func (r *Resolver) secretFromEnv(name string) (string, *secretError) {
	value, ok := r.Assignment.Env[name]
	if !ok && r.Opts.Open {
		value, ok = r.Env[name]
	}
	switch {
	case ok:
		return value, nil
	case slices.Contains(r.Assignment.Missing, name):
		return "", &secretError{err: fmt.Errorf("{secret: {env: %s}}: the credential %s could not be read", name, name), hint: missingHint(name)}
	case r.Opts.Open:
		return "", &secretError{
			err: fmt.Errorf("the environment has no %s", name), hint: "set " + name,
		}
	default:
		return "", &secretError{
			err:  fmt.Errorf("the run's credentials have no environment variable %s", name),
			hint: fmt.Sprintf("put %s under credentials[].secrets in holdfast.yaml, %s", name, r.entry()),
		}
	}
}

// entry says which of the credentials a run of this kind gets.
func (r *Resolver) entry() string {
	phase := "plan"
	if r.Assignment.Kind.Writes() {
		phase = "apply"
	}
	return "in an entry for this cluster's project and environment and for both phases, or the phase " + phase
}

// secretFromFile reads a file that is in one of the run's secret folders, links
// followed. Nothing is reported of what is elsewhere, not even whether it exists.
func (r *Resolver) secretFromFile(name string) (string, *secretError) {
	name = filepath.Clean(name)
	if r.Opts.Open {
		return secretFile(name, func(name string, _ int, _ os.FileMode) (*os.File, error) { return folders.Open(name) }, name)
	}
	outside := &secretError{
		err:  fmt.Errorf("file %s is not in any of the run's secret folders", name),
		hint: "put its folder under credentials[].secretDirs in holdfast.yaml, " + r.entry(),
	}
	if !slices.ContainsFunc(r.Assignment.SecretDirs, func(dir string) bool { return folders.Below(dir, name) != "" }) {
		return "", outside
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", fileError(name, err)
	}
	for _, dir := range r.Assignment.SecretDirs {
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		rest := folders.Below(dir, real)
		if rest == "" {
			continue
		}
		root, err := os.OpenRoot(dir) // whoever changes a link just now cannot lead us out
		if err != nil {
			return "", fileError(name, err)
		}
		defer root.Close()
		return secretFile(name, root.OpenFile, rest)
	}
	return "", outside
}

type opener func(name string, flag int, perm os.FileMode) (*os.File, error)

func secretFile(shown string, open opener, name string) (string, *secretError) {
	data, err := readSecret(open, name, maxSecretValue+2) // and a line's end
	if err != nil {
		return "", fileError(shown, err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// fileError says what is wrong with a file, in the words of the system.
func fileError(name string, err error) *secretError {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &secretError{
		err: fmt.Errorf("read file %s: %w", name, err), hint: "the agent's user must be able to read the file, and its folder",
	}
}

// readSecret reads a regular file of at most limit bytes. It waits for nothing:
// Assignment pipe that nobody writes to is not a regular file either.
func readSecret(open opener, name string, limit int64) ([]byte, error) {
	f, err := open(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("it has more than %d bytes", limit)
	}
	return data, nil
}

// checkSecret reports why a value cannot be one.
func checkSecret(value string) *secretError {
	problem, hint := "", "a secret variable must be text in UTF-8: encode anything else, for example as base64"
	switch {
	case value == "":
		problem, hint = "the value is empty", "put the value where the cluster's document says it is"
	case len(value) > maxSecretValue:
		problem = fmt.Sprintf("the value has more than %d bytes", maxSecretValue)
	case strings.ContainsRune(value, 0) || !utf8.ValidString(value):
		problem = "the value is not text"
	default:
		return nil
	}
	return &secretError{err: errors.New(problem), hint: hint}
}
