package kubernetes

import (
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast"
)

// A kubelet that was started again and does not find a container says that it has ended: that
// proves nothing of its processes.
func TestContainerThatWasLost(t *testing.T) {
	t.Parallel()
	for reason, dead := range map[string]bool{"Error": true, statusUnknown: false} {
		s := newSeen()
		s.pods([]core.Pod{{
			ObjectMeta: meta.ObjectMeta{Name: "p", UID: "u", Labels: map[string]string{labelRun: "run-1", labelAttempt: "1"}},
			Status: core.PodStatus{Phase: core.PodFailed, ContainerStatuses: []core.ContainerStatus{{
				Name: mainContainer, State: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 137, Reason: reason}},
			}}},
		}})
		list, _ := s.list()
		if len(list) != 1 || list[0].Dead != dead || (list[0].Reason == holdfast.CauseNodeLost) == dead {
			t.Errorf("%s: %+v", reason, list)
		}
	}
}

// What was left over of a Job that this process has never seen is gone with its Pod, and not
// listed forever.
func TestPodWithoutItsJob(t *testing.T) {
	t.Parallel()
	for name, goes := range map[string]func(s *seen, pod *core.Pod){
		"watched": func(s *seen, pod *core.Pod) { s.sawPod(pod, true) },
		"listed":  func(s *seen, _ *core.Pod) { s.pods(nil) },
	} {
		s := newSeen()
		pod := core.Pod{ObjectMeta: meta.ObjectMeta{Name: "p", UID: "u", Labels: map[string]string{labelRun: "run-1", labelAttempt: "1"}}}
		s.jobs(nil)
		s.pods([]core.Pod{pod})
		if list, _ := s.list(); len(list) != 1 || list[0].Over {
			t.Errorf("%s: as long as it is there, it says %+v", name, list)
		}
		goes(s, &pod)
		if list, _ := s.list(); len(list) != 1 || !list[0].Over || list[0].Dead {
			t.Errorf("%s: it says %+v", name, list)
		}
	}
}
