package e2e_test

import (
	"testing"
)

// A pull request is planned; its merge, however it was done, is applied.
func TestPullRequestIsPlannedAndItsMergeApplied(t *testing.T) {
	t.Parallel()
	for name, merge := range map[string]func(*pull){
		"merge": (*pull).merge, "squash": (*pull).squash, "rebase": (*pull).rebase,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.start()

			pr := w.fleet().open(cluster("alpha", "nodes: 2"))
			pr.untilPlanned("2 to create")
			pr.untilComment("`alpha` changes", "terraform_data.node[1]")

			merge(pr)
			pr.untilApplied("2 created")
			pr.untilComment("Merged as", "applied")
		})
	}
}
