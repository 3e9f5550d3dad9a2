package kubernetes

import (
	"fmt"
	"net/http"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// calls are the kinds of a namespace that this room reads and writes. The clientset of
// client-go has all kinds of all groups: with it, each process of the program, the first
// ones of a sandbox among them, would start with 50 MB more to load and to initialise.
type calls struct {
	jobs    *gentype.ClientWithList[*batch.Job, *batch.JobList]
	pods    *gentype.ClientWithList[*core.Pod, *core.PodList]
	events  *gentype.ClientWithList[*core.Event, *core.EventList]
	secrets *gentype.Client[*core.Secret]
}

func newCalls(config *rest.Config, namespace string) (*calls, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batch.AddToScheme, core.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	meta.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	config = rest.CopyConfig(config)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst) // one for all groups
	codecs := serializer.NewCodecFactory(scheme)
	ofBatch, err := groupClient(config, transport, codecs, "/apis", batch.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	ofCore, err := groupClient(config, transport, codecs, "/api", core.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	parameters := runtime.NewParameterCodec(scheme)
	return &calls{
		jobs: gentype.NewClientWithList("jobs", ofBatch, parameters, namespace,
			func() *batch.Job { return &batch.Job{} }, func() *batch.JobList { return &batch.JobList{} }, gentype.PrefersProtobuf[*batch.Job]()),
		pods: gentype.NewClientWithList("pods", ofCore, parameters, namespace,
			func() *core.Pod { return &core.Pod{} }, func() *core.PodList { return &core.PodList{} }, gentype.PrefersProtobuf[*core.Pod]()),
		events: gentype.NewClientWithList("events", ofCore, parameters, namespace,
			func() *core.Event { return &core.Event{} }, func() *core.EventList { return &core.EventList{} }, gentype.PrefersProtobuf[*core.Event]()),
		secrets: gentype.NewClient("secrets", ofCore, parameters, namespace,
			func() *core.Secret { return &core.Secret{} }, gentype.PrefersProtobuf[*core.Secret]()),
	}, nil
}

// groupClient calls one group of the API, over the connections of all.
func groupClient(
	config *rest.Config, transport *http.Client, codecs serializer.CodecFactory, path string, group schema.GroupVersion,
) (rest.Interface, error) {
	own := rest.CopyConfig(config)
	own.APIPath, own.GroupVersion = path, &group
	own.NegotiatedSerializer = codecs.WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(own, transport)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	return client, nil
}
