package lock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-dev/holdfast"
)

// What Redis is, other than expected. Calls return these together with
// holdfast.ErrUnavailable.
var (
	// ErrClusterNode says that a single Redis was expected, and a node of a Redis
	// Cluster found.
	ErrClusterNode = errors.New("a node of a Redis Cluster")
	// ErrNoCluster says that a node of a Redis Cluster was expected, and a single Redis
	// found.
	ErrNoCluster = errors.New("not a Redis Cluster")
	// ErrUnknownMaster says that sentinels do not know the master that they were asked for.
	ErrUnknownMaster = errors.New("the sentinels do not know this master")
	// ErrReplica says that a replica was asked, which takes no locks. It passes where
	// Sentinel or a Cluster is in the middle of a failover.
	ErrReplica = errors.New("a replica")
	// ErrUnknownCommand says that what was asked is something else: a sentinel instead of
	// a Redis, a Redis instead of a sentinel, or one in which a command was renamed.
	ErrUnknownCommand = errors.New("it does not know a command that is needed")
)

// classify turns what go-redis returns into the errors that callers branch on.
func (r *Redis) classify(ctx context.Context, err error) error {
	var (
		reply  redis.Error
		locked *holdfast.LockedError
	)
	switch {
	case errors.As(err, &locked), errors.Is(err, holdfast.ErrNotFound):
		return err
	case errors.Is(err, ErrOpen):
		return fmt.Errorf("%s: %w", r.at.name, err)
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case errors.As(err, &reply):
		return fmt.Errorf("%s: %w", r.at.name, classifyReply(reply))
	case isTimeout(err):
		return fmt.Errorf("%s: %w: no answer in time: %w", r.at.name, holdfast.ErrUnavailable, oneLine(err))
	default: // the network, an end of file, a full pool, a closed client
		return fmt.Errorf("%s: %w: %w", r.at.name, holdfast.ErrUnavailable, oneLine(err))
	}
}

// classifyReply judges an error that Redis itself answered, by its first word.
func classifyReply(err redis.Error) error {
	word, text, _ := strings.Cut(err.Error(), " ")
	switch {
	case errors.Is(err, redis.Nil): // only sentinels that were asked for a master answer so
		return fmt.Errorf("%w: %w", holdfast.ErrUnavailable, ErrUnknownMaster)
	case word == "NOAUTH", word == "WRONGPASS":
		return fmt.Errorf("%w: %w", holdfast.ErrUnauthorized, err)
	case word == "NOPERM", strings.Contains(text, "user executing the script can't"), strings.Contains(text, "ACL failure in script"):
		return fmt.Errorf("%w: %w", holdfast.ErrForbidden, err)
	case word == "MOVED", word == "ASK":
		return fmt.Errorf("%w: it is %w: %w", holdfast.ErrUnavailable, ErrClusterNode, err)
	case word == "READONLY":
		return fmt.Errorf("%w: it is %w: %w", holdfast.ErrUnavailable, ErrReplica, err)
	case strings.Contains(text, "cluster support disabled"):
		return fmt.Errorf("%w: it is %w: %w", holdfast.ErrUnavailable, ErrNoCluster, err)
	case strings.HasPrefix(text, "unknown command"):
		// Its arguments are in Redis's words, and nobody's business.
		command, _, _ := strings.Cut(text, ",")
		return fmt.Errorf("%w: %w: %s", holdfast.ErrUnavailable, ErrUnknownCommand, command)
	}
	switch word {
	case "LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY", "OOM", "MISCONF", "NOREPLICAS":
		return fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)
	default:
		return err
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// oneLine is err with its text on one line: that of sentinels has one for each.
func oneLine(err error) error {
	if !strings.Contains(err.Error(), "\n") {
		return err
	}
	return &lineError{err}
}

type lineError struct{ error }

func (e *lineError) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }

func (e *lineError) Unwrap() error { return e.error }
