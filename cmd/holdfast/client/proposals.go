package client

import (
	"context"
	"net/http"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// Propose makes a pull request that adds, changes or removes the document of a cluster; of a
// dry run, it says what that would be.
func Propose(ctx context.Context, c *Client, req v1.ClusterProposal) (made v1.ProposedCluster, err error) {
	err = c.call(ctx, http.MethodPost, "proposals", nil, req, &made)
	return made, err
}
