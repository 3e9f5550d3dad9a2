package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/statelock"
)

// Rescuer puts states right that engines could not save; *rescue.Keeper is one.
// A cluster without such a state is an ErrNotFound.
type Rescuer interface {
	Unsaved(ctx context.Context, cluster string) (holdfast.UnsavedState, error)
	// OpenUnsaved opens the state, and puts on record who did.
	OpenUnsaved(ctx context.Context, cluster, actor string) (io.ReadCloser, error)
	// PushUnsaved queues the run that pushes it, or data in its place if there is
	// any. ErrConflict if one is queued.
	PushUnsaved(ctx context.Context, cluster, actor string, data []byte) (holdfast.Run, error)
	WaiveUnsaved(ctx context.Context, cluster, actor, reason string) (holdfast.UnsavedState, error)
	Unlocker
	Migrator
}

// Migrator moves states.
type Migrator interface {
	// Migrate queues the run that moves the state of a cluster to where it is to be, or says
	// what it would do. ErrConflict, with the reason, if that cannot be now.
	Migrate(ctx context.Context, ask holdfast.StateMigration) (holdfast.StateMigration, error)
}

// Unlocker deals with locks of backends that are not Holdfast's.
type Unlocker interface {
	// BackendLock is an ErrNotFound if the newest run found none, or none that code of
	// runs which the caller sees releases.
	BackendLock(ctx context.Context, cluster string, sees statelock.SeesRun) (statelock.BackendLock, error)
	// UnlockBackend queues the run that releases a lock. ErrConflict, with the reason in its
	// text, if that may not be; ErrNotFound if nothing is known of the cluster.
	UnlockBackend(ctx context.Context, ask statelock.BackendUnlock) (holdfast.Run, error)
}

const maxWaiveReason = 1000

func (s *stateAPI) routes(api *gin.RouterGroup) {
	api.GET("/states/:cluster", s.getUnsaved)
	api.GET("/states/:cluster/lock", s.getBackendLock)
	api.POST("/states/:cluster/unlock", s.postBackendUnlock)
	api.GET("/states/:cluster/file", s.getUnsavedFile)
	api.POST("/states/:cluster/push", s.postStatePush)
	api.POST("/states/:cluster/waive", s.postStateWaive)
	api.POST("/states/:cluster/migrate", s.postStateMigrate)
}

func (s *stateAPI) getUnsaved(c *gin.Context) {
	u, err := s.opts.Rescuer.Unsaved(c.Request.Context(), c.Param("cluster"))
	if err != nil {
		s.failState(c, err)
		return
	}
	c.JSON(http.StatusOK, v1.UnsavedStateOf(u))
}

// getUnsavedFile answers with a state, and what is secret in it: only to those who
// may apply.
func (s *stateAPI) getUnsavedFile(c *gin.Context) {
	file, err := s.opts.Rescuer.OpenUnsaved(c.Request.Context(), c.Param("cluster"), caller(c).Name)
	if err != nil {
		s.failState(c, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	s.send(c, "application/json", file)
}

// failState names the cluster whose state a refusal is about.
func (s *stateAPI) failState(c *gin.Context, err error) {
	if errors.Is(err, holdfast.ErrNotFound) {
		err = missing(fmt.Sprintf("cluster %q has no state that could not be saved", c.Param("cluster")), "")
	} else {
		err = fmt.Errorf("unsaved state of cluster %q: %w", c.Param("cluster"), err)
	}
	s.fail(c, err)
}

func (s *stateAPI) postStatePush(c *gin.Context) {
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, s.limits.State))
	if err != nil {
		s.fail(c, readError(err))
		return
	}
	data = bytes.TrimSpace(data)
	if len(data) > 0 {
		var header struct {
			Serial  *int64 `json:"serial"`
			Lineage string `json:"lineage"`
		}
		if err := json.Unmarshal(data, &header); err != nil || header.Serial == nil {
			s.fail(c, badRequest("the file is not a state: it is not JSON with a serial"))
			return
		}
	}
	run, err := s.opts.Rescuer.PushUnsaved(c.Request.Context(), c.Param("cluster"), caller(c).Name, data)
	if err != nil {
		s.failState(c, err)
		return
	}
	c.JSON(http.StatusAccepted, v1.RunOf(run))
}

func (s *stateAPI) postStateWaive(c *gin.Context) {
	var req v1.WaiveRequest
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	if req.Reason == "" || len(req.Reason) > maxWaiveReason {
		s.fail(c, badRequest("a reason of 1 to %d bytes is needed: it is recorded", maxWaiveReason))
		return
	}
	cluster := c.Param("cluster")
	u, err := s.opts.Rescuer.WaiveUnsaved(c.Request.Context(), cluster, caller(c).Name, req.Reason)
	if err != nil {
		s.failState(c, err)
		return
	}
	c.JSON(http.StatusOK, v1.UnsavedStateOf(u))
}

func (s *stateAPI) getBackendLock(c *gin.Context) {
	lock, err := s.opts.Rescuer.BackendLock(c.Request.Context(), c.Param("cluster"), s.seesRun(c))
	if err != nil {
		s.fail(c, named(fmt.Sprintf("lock of the backend of cluster %q", c.Param("cluster")), err))
		return
	}
	c.JSON(http.StatusOK, v1.BackendLockOf(lock))
}

var backendLockID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:/_.+=-]*$`)

// mayForceUnlock reports whether the caller may force, and answers if not. A cluster that only
// a pull request has is held to the runs that the caller sees.
func (s *stateAPI) mayForceUnlock(c *gin.Context) bool {
	if cluster := c.Param("cluster"); !s.isProposed(c, cluster) {
		return s.mayDo(c, access.Force, cluster)
	}
	return s.mayDo(c, access.Force)
}

func (s *stateAPI) postBackendUnlock(c *gin.Context) {
	var req v1.UnlockRequest
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	if len(req.Lock) > 200 || !backendLockID.MatchString(req.Lock) {
		s.fail(c, badRequest("lock %q is not the ID of a lock", req.Lock))
		return
	}
	if req.Force && !s.mayForceUnlock(c) {
		return
	}
	run, err := s.opts.Rescuer.UnlockBackend(c.Request.Context(), statelock.BackendUnlock{
		Cluster: c.Param("cluster"), Lock: req.Lock, Actor: caller(c).Name, Force: req.Force, Sees: s.seesRun(c),
	})
	if err != nil {
		s.fail(c, named(fmt.Sprintf("cluster %q", c.Param("cluster")), err))
		return
	}
	c.JSON(http.StatusAccepted, v1.RunOf(run))
}

func (s *stateAPI) postStateMigrate(c *gin.Context) {
	var req v1.MigrateStateRequest
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	m, err := s.opts.Rescuer.Migrate(c.Request.Context(), holdfast.StateMigration{
		Cluster: c.Param("cluster"), Actor: caller(c).Name, DryRun: req.DryRun, Copied: req.Copied,
	})
	if err != nil {
		s.fail(c, named(fmt.Sprintf("state of cluster %q", c.Param("cluster")), err))
		return
	}
	c.JSON(http.StatusOK, v1.StateMigrationOf(m))
}
