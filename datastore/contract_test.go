package datastore_test

import (
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/server"
)

// What the rooms above ask for is what there is.
var (
	_ reconciler.Store = (*datastore.Store)(nil)
	_ server.Records   = (*datastore.Store)(nil)
	_ server.Blobs     = (*datastore.Store)(nil)
	_ server.States    = (*datastore.Store)(nil)
)
