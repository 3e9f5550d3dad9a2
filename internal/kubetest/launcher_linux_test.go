package kubetest_test

import (
	"fmt"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast"
)

// A namespace with a quota of two Pods executes the plans of eight clusters, all well: what
// waits for a quota is not failed for it.
func TestMoreRunsThanTheQuota(t *testing.T) {
	const clusters = 8
	startNode(t, "crowded")
	w := newWorld(t, "crowded", "real", "")
	_, err := admin.CoreV1().ResourceQuotas(w.space.name).Create(t.Context(), &core.ResourceQuota{
		ObjectMeta: meta.ObjectMeta{Name: "pods"}, Spec: core.ResourceQuotaSpec{Hard: core.ResourceList{"pods": resource.MustParse("2")}},
	}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.git("checkout", "-q", "-b", "add-many", "main")
	for i := range clusters {
		w.cluster(fmt.Sprintf("many-%d", i), one)
	}
	w.commit("Add many")
	w.git("checkout", "-q", "main")
	began := time.Now()
	for i := range clusters {
		run := w.untilRun(fmt.Sprintf("many-%d", i), holdfast.RunPlan, "it is planned", is(holdfast.RunPlanned))
		if run.Retries != 0 {
			t.Errorf("%s was retried %d times", run.Cluster, run.Retries)
		}
	}
	t.Logf("%d plans, two at a time: %s", clusters, time.Since(began))
}
