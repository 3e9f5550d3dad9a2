package outputs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// Reader reads outputs that runs have kept. It is safe for concurrent use.
type Reader struct {
	from   history.Artefacts
	logger *slog.Logger
	now    func() time.Time
}

// NewReader returns a Reader.
func NewReader(from history.Artefacts, logger *slog.Logger, now func() time.Time) *Reader {
	return &Reader{from: from, logger: logger, now: now}
}

// Read fills in what the outputs of a run say of the cluster that it has
// applied, in part or as a whole, or found as it was applied. Outputs that were not
// kept say nothing. For a moment after the run they may not be readable: an object
// store may be away. Later on they are left out, as there are other things to do, and
// the record says that they are to be read again.
func (r *Reader) Read(ctx context.Context, applied *holdfast.Applied, run holdfast.Run) error {
	if run.ID == applied.Run && len(applied.OutputRoles) == 0 {
		return nil
	}
	data, err := history.Artefact(ctx, r.from, run.ID, protocol.ArtefactOutputs)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		if run.ID == applied.OutputsOf() {
			applied.OutputsUnread = false
		}
		return nil
	case err != nil && r.now().Sub(run.FinishedAt) <= outputsPatience:
		return fmt.Errorf("read outputs of run %s: %w", run.ID, err)
	case err != nil && run.Kind == holdfast.RunDrift:
	default:
		take(applied, run)
		applied.OutputsUnread = err != nil
	}
	var outputs []holdfast.Output
	if err == nil {
		err = json.Unmarshal(data, &outputs)
	}
	if err != nil {
		r.logger.WarnContext(ctx, "outputs were not read", "cluster", run.Cluster, "run", run.ID, "err", err)
		return nil
	}
	for _, err := range Fill(applied, outputs) {
		r.logger.WarnContext(ctx, "output was ignored", "cluster", run.Cluster, "run", run.ID, "err", err)
	}
	return nil
}

// take sets the outputs of applied to those of a run.
func take(applied *holdfast.Applied, run holdfast.Run) {
	if run.ID == applied.OutputsOf() {
		return
	}
	if applied.OutputsRun = run.ID; run.Kind.Writes() { // its root module may have others
		applied.OutputRoles = run.OutputRoles
	}
}

// ReadLeft is Read for an apply that has begun since the last one that ended well, and
// has failed; nil if there is none. What it has changed is in the state.
func (r *Reader) ReadLeft(ctx context.Context, applied *holdfast.Applied, failed *holdfast.Run) error {
	if failed == nil || failed.ID <= applied.OutputsOf() {
		return nil
	}
	return r.Read(ctx, applied, *failed)
}

// ReadAgain is Read for outputs that could not be read when the cluster's record was
// written, if there are any.
func (r *Reader) ReadAgain(ctx context.Context, cluster string, applied *holdfast.Applied) error {
	if !applied.OutputsUnread {
		return nil
	}
	return r.Read(ctx, applied, holdfast.Run{ID: applied.OutputsOf(), Cluster: cluster, FinishedAt: applied.At})
}

// AgainAfter is when outputs that could not be read are read again.
const AgainAfter = 5 * time.Minute

// Fill fills in what outputs say of a cluster, by applied.OutputRoles, and returns why
// some of them say nothing. It repeats no value that may be secret.
func Fill(applied *holdfast.Applied, outputs []holdfast.Output) (ignored []error) {
	applied.Endpoint, applied.NodeCount, applied.Kubeconfig = "", 0, ""
	for _, take := range []struct {
		meaning string
		from    func(holdfast.Output) error
	}{
		{holdfast.OutputRoleEndpoint, func(o holdfast.Output) (err error) {
			applied.Endpoint, err = endpointOf(o)
			return err
		}},
		{holdfast.OutputRoleNodeCount, func(o holdfast.Output) (err error) {
			applied.NodeCount, err = nodeCountOf(o)
			return err
		}},
		{holdfast.OutputRoleKubeconfig, func(o holdfast.Output) error {
			applied.Kubeconfig = o.Name
			return nil
		}},
	} {
		name := applied.OutputRoles[take.meaning]
		i := slices.IndexFunc(outputs, func(o holdfast.Output) bool { return o.Name == name })
		if name == "" || i < 0 {
			continue // an output of a module that is off
		}
		if err := take.from(outputs[i]); err != nil {
			ignored = append(ignored, fmt.Errorf("output %s is not a %s: %w", name, take.meaning, err))
		}
	}
	return ignored
}

// outputsPatience is how long after a run its outputs may not be readable.
const outputsPatience = time.Minute

const maxEndpoint = 2048 // bytes

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// endpointOf returns an output that is a URL or a host, with a port or without.
func endpointOf(o holdfast.Output) (string, error) {
	var text string
	switch err := json.Unmarshal(o.Value, &text); {
	case o.Sensitive:
		return "", errors.New("it is sensitive")
	case err != nil || text == "":
		return "", errors.New("it must be a non-empty string")
	case len(text) > maxEndpoint:
		return "", errors.New("it is too long")
	case isHost(text):
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || !isHost(u.Host) || strings.ContainsFunc(text, unprintable) {
		return "", errors.New("it is neither a URL nor a host")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("must be a host or URL without user, query or fragment")
	}
	return text, nil
}

func unprintable(c rune) bool { return !strconv.IsPrint(c) || c == ' ' }

// isHost reports whether text is a name or an address, with a port or without.
func isHost(text string) bool {
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return net.ParseIP(host) != nil || len(host) <= 253 && hostName.MatchString(host)
}

// nodeCountOf returns an output that is a whole number, written as one or as a
// text.
func nodeCountOf(o holdfast.Output) (int, error) {
	if o.Sensitive {
		return 0, errors.New("it is sensitive")
	}
	var value any
	if err := json.Unmarshal(o.Value, &value); err != nil {
		return 0, errors.New("it must be a number")
	}
	number, ok := value.(float64)
	if text, is := value.(string); is {
		n, err := strconv.ParseUint(text, 10, 31)
		number, ok = float64(n), err == nil
	}
	if !ok || number != math.Trunc(number) || number < 0 || number > math.MaxInt32 {
		return 0, errors.New("it must be an integer")
	}
	return int(number), nil
}

// Refresh takes what the outputs say from a check that has found a cluster
// as it was last applied: an apply may not have kept them.
func (r *Reader) Refresh(ctx context.Context, rec *holdfast.ClusterRecord, run holdfast.Run) error {
	last := rec.Applied
	same := run.Bundle == last.Bundle && run.Dir == last.Dir && run.SourceDigest.Equal(last.SourceDigest)
	if run.Status != holdfast.RunNoChanges || !same || run.StartedAt.Before(last.At) {
		return nil
	}
	return r.Read(ctx, &rec.Applied, run)
}
