package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// TestQueue reads the queue part by part: positions are those of the whole queue for
// everybody, and a token that is bound to a project sees the runs of that alone.
func TestQueue(t *testing.T) {
	t.Parallel()
	w := fleet()
	w.queued = 7
	url := serve(t, scoped(t, w).API()) + "/api/v1/queue"
	for token, want := range map[string][]int{viewerToken: {1, 2, 3, 4, 5, 6, 7}, paymentsToken: {2, 4, 6}} {
		var positions []int
		for cursor, part := "", 0; part == 0 || cursor != ""; part++ {
			got := request(t, "GET", fmt.Sprintf("%s?limit=2&cursor=%s", url, cursor), token, "")
			var list v1.List[v1.QueuedRun]
			if err := json.Unmarshal([]byte(got.body), &list); got.status != http.StatusOK || err != nil {
				t.Fatalf("%d %s: %v", got.status, got.body, err)
			}
			for _, entry := range list.Items {
				positions = append(positions, entry.Position)
				if entry.Run != fmt.Sprint("queued-", entry.Position) || entry.Ahead.Others != entry.Position-1 {
					t.Errorf("at position %d is %+v", entry.Position, entry)
				}
			}
			cursor = list.Next
		}
		if !slices.Equal(positions, want) {
			t.Errorf("positions %v, want %v", positions, want)
		}
	}
	for _, query := range []string{"?cursor=nonsense", "?cursor=WyItMSJd", "?limit=-1", "?cluster=prod-eu"} {
		if got := request(t, "GET", url+query, viewerToken, ""); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}
