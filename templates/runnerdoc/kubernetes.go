package runnerdoc

import (
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// waysOf are the keys of spec.kubernetes of which a type has exactly one.
func waysOf(t runnerspec.Type) []string {
	switch t {
	case runnerspec.KubernetesGKE:
		return []string{"gke"}
	case runnerspec.KubernetesEKS:
		return []string{"eks"}
	default:
		return []string{"inCluster", "kubeconfig", "server"}
	}
}

// kubernetes reads how the API server is reached.
func (r reader) kubernetes(o *decode.Object, t runnerspec.Type) *runnerspec.KubernetesAccess {
	if o.Node == nil {
		return nil
	}
	a := &runnerspec.KubernetesAccess{InCluster: o.Bool("inCluster", false), Kubeconfig: r.secret(o, "kubeconfig")}
	if s := o.Child("server"); s.Node != nil {
		a.Server = r.server(s)
	}
	if g := o.Child("gke"); g.Node != nil {
		a.GKE = r.gke(g)
	}
	if e := o.Child("eks"); e.Node != nil {
		a.EKS = r.eks(e)
	}
	if t != "" {
		r.oneWay(o, t)
	}
	o.Done()
	return a
}

// oneWay reports ways to an API server that are too many, or not of the type.
func (r reader) oneWay(o *decode.Object, t runnerspec.Type) {
	allowed := waysOf(t)
	first := ""
	for _, way := range []string{"inCluster", "kubeconfig", "server", "gke", "eks"} {
		key, value := o.Find(way)
		if !o.Has(way) || way == "inCluster" && value.Value == "false" {
			continue
		}
		switch {
		case !slices.Contains(allowed, way):
			r.Add(key, fmt.Sprintf("spec.kubernetes.%s does not belong to a runner of type %s", way, t), wording.OneInOrder(allowed))
		case first != "":
			r.Add(key, fmt.Sprintf("spec.kubernetes has both %s and %s", first, way), "keep one")
		default:
			first = way
		}
	}
	if first == "" {
		r.Add(o.Node, "spec.kubernetes does not say where the API server is", wording.OneInOrder(allowed))
	}
}

func (r reader) server(o *decode.Object) *runnerspec.KubernetesServer {
	s := &runnerspec.KubernetesServer{
		URL: r.url(o, "url", true, "https"), CertificateAuthority: r.certificates(o, "certificateAuthority"),
		ProxyURL: r.url(o, "proxyURL", false, "http", "https"), Token: r.secret(o, "token"),
		ClientCertificate: r.certificates(o, "clientCertificate"), ClientKey: r.secret(o, "clientKey"),
	}
	const hint = "write token: {secret: NAME}, or clientCertificate with clientKey: {secret: NAME}"
	certificate, key := o.Has("clientCertificate"), o.Has("clientKey")
	switch {
	case o.Has("token") && (certificate || key):
		r.Add(o.Node, "spec.kubernetes.server has both a token and a client's certificate", "keep one")
	case certificate != key:
		r.Add(o.Node, "spec.kubernetes.server needs clientCertificate and clientKey together", hint)
	case !certificate && !o.Has("token"):
		r.Add(o.Node, "spec.kubernetes.server has no credential", hint)
	}
	o.Done()
	return s
}

func (r reader) gke(o *decode.Object) *runnerspec.GKECluster {
	g := &runnerspec.GKECluster{
		Project: o.Required("project"), Location: o.Required("location"), Name: o.Required("name"),
		InternalIP: o.Bool("internalIP", false), ProxyURL: r.url(o, "proxyURL", false, "http", "https"),
		WorkloadIdentityProvider: o.Required("workloadIdentityProvider"), ServiceAccount: o.Text("serviceAccount"),
	}
	o.Done()
	return g
}

func (r reader) eks(o *decode.Object) *runnerspec.EKSCluster {
	e := &runnerspec.EKSCluster{
		Region: r.region(o, "region", true), Name: o.Required("name"), RoleARN: r.role(o, "roleARN"),
		SessionName: r.session(o), STSRegion: r.region(o, "stsRegion", false),
	}
	o.Done()
	return e
}

// job reads what Jobs are made from.
func (r reader) job(o *decode.Object) *runnerspec.Job {
	if o.Node == nil {
		return nil
	}
	j := &runnerspec.Job{
		Namespace: r.objectName(o, "namespace", true), Image: r.image(o),
		PullPolicy:          o.Choice("pullPolicy", "Always", "IfNotPresent", "Never"),
		PlanServiceAccount:  r.objectName(o, "planServiceAccount", true),
		ApplyServiceAccount: r.objectName(o, "applyServiceAccount", true),
		SameServiceAccount:  o.Bool("sameServiceAccount", false),
		PodTemplate:         r.mapping(o.Get("podTemplate"), o.Label("podTemplate")),
	}
	names, nodes := o.Strings("pullSecrets")
	for i, name := range names {
		if !isSubdomain(name) {
			r.Add(nodes[i], fmt.Sprintf("%s[%d] %q is not a name of Kubernetes", o.Label("pullSecrets"), i, wording.Clip(name)), "")
		}
	}
	j.PullSecrets = names
	j.NodeSelector = r.texts(o.Child("nodeSelector"), func(string, string) (string, string) { return "", "" })
	for i, item := range o.Items("tolerations") {
		if one := r.mapping(item, fmt.Sprintf("%s[%d]", o.Label("tolerations"), i)); one != nil {
			j.Tolerations = append(j.Tolerations, one)
		}
	}
	if j.PlanServiceAccount != "" && j.PlanServiceAccount == j.ApplyServiceAccount && !j.SameServiceAccount {
		r.Add(o.Get("applyServiceAccount"), "spec.job.applyServiceAccount is that of plans: code in a pull request would have the rights of applies",
			"name another one, or write sameServiceAccount: true")
	}
	o.Done()
	return j
}

// storage reads where states are.
func (r reader) storage(o *decode.Object, t runnerspec.Type) *holdfast.StateStorage {
	fields := map[string][]string{
		"kubernetes": {"namespace"}, "s3": {"bucket", "region", "prefix"}, "gcs": {"bucket", "prefix"},
		"azurerm": {"resourceGroup", "storageAccount", "container", "prefix"},
	}
	required := map[string][]string{
		"kubernetes": {"namespace"}, "s3": {"bucket"}, "gcs": {"bucket"}, "azurerm": {"storageAccount", "container"},
	}
	if !o.Has("type") {
		o.Missing("type")
	}
	s := &holdfast.StateStorage{Type: o.Choice("type", "azurerm", "gcs", "kubernetes", "s3")}
	for _, field := range []struct {
		key  string
		into *string
	}{
		{"namespace", &s.Namespace},
		{"bucket", &s.Bucket},
		{"region", &s.Region},
		{"resourceGroup", &s.ResourceGroup},
		{"storageAccount", &s.StorageAccount},
		{"container", &s.Container},
		{"prefix", &s.Prefix},
	} {
		key, _ := o.Find(field.key)
		switch {
		case s.Type != "" && key != nil && !slices.Contains(fields[s.Type], field.key):
			o.Get(field.key)
			r.Add(key, fmt.Sprintf("%s does not belong to storage of type %s", o.Label(field.key), s.Type), wording.OneInOrder(fields[s.Type]))
		case slices.Contains(required[s.Type], field.key):
			*field.into = o.Required(field.key)
		default:
			*field.into = o.Text(field.key)
		}
	}
	if s.Prefix != "" && !validPrefix(s.Prefix) {
		r.Add(o.Get("prefix"), fmt.Sprintf("spec.storage.prefix %q is not a folder", wording.Clip(s.Prefix)), "such as states/eu: without / at its begin and .. in it")
	}
	if s.Type == "kubernetes" && s.Namespace != "" && !isSubdomain(s.Namespace) {
		r.Add(o.Get("namespace"), fmt.Sprintf("spec.storage.namespace %q is not a name of Kubernetes", wording.Clip(s.Namespace)), "")
	}
	if allowed := t.StorageTypes(); t != "" && s.Type != "" && !slices.Contains(allowed, s.Type) {
		r.Add(o.Get("type"), fmt.Sprintf("a runner of type %s cannot keep states in %s", t, s.Type),
			wording.OneInOrder(allowed)+"; or leave spec.storage out for Holdfast's own backend")
	}
	o.Done()
	return s
}

// ecs reads what tasks are made from.
func (r reader) ecs(o *decode.Object) *runnerspec.ECSTask {
	if o.Node == nil {
		return nil
	}
	e := &runnerspec.ECSTask{
		Region: r.region(o, "region", true), Cluster: o.Required("cluster"), RoleARN: r.role(o, "roleARN"),
		SessionName: r.session(o), STSRegion: r.region(o, "stsRegion", false),
		ExecutionRoleARN: r.role(o, "executionRoleARN"), PlanTaskRoleARN: r.role(o, "planTaskRoleARN"),
		ApplyTaskRoleARN: r.role(o, "applyTaskRoleARN"), SameTaskRole: o.Bool("sameTaskRole", false),
		PublicIP: o.Bool("publicIP", false), Image: r.image(o),
	}
	e.Subnets = r.nonEmpty(o, "subnets")
	if len(e.Subnets) == 0 && !o.Has("subnets") {
		o.Missing("subnets")
	}
	e.SecurityGroups = r.nonEmpty(o, "securityGroups")
	e.Environment = r.texts(o.Child("environment"), func(name, _ string) (string, string) { return badVariable(name) })
	e.Secrets = r.texts(o.Child("secrets"), func(name, arn string) (string, string) {
		if message, hint := badVariable(name); message != "" {
			return message, hint
		}
		if _, both := e.Environment[name]; both {
			return "is in spec.ecs.environment, too", "keep one"
		}
		if arn != "" && !secretARN.MatchString(arn) {
			return "is not the ARN of a secret", "that of a secret of Secrets Manager, or of a parameter of the Systems Manager"
		}
		return "", ""
	})
	if e.PlanTaskRoleARN != "" && e.PlanTaskRoleARN == e.ApplyTaskRoleARN && !e.SameTaskRole {
		r.Add(o.Get("applyTaskRoleARN"), "spec.ecs.applyTaskRoleARN is that of plans: code in a pull request would have the rights of applies",
			"name another one, or write sameTaskRole: true")
	}
	o.Done()
	return e
}

// nonEmpty reads a list of texts of which none is empty.
func (r reader) nonEmpty(o *decode.Object, key string) []string {
	list, nodes := o.Strings(key)
	for i, text := range list {
		if text == "" {
			r.Add(nodes[i], fmt.Sprintf("%s[%d] is empty", o.Label(key), i), "")
		}
	}
	if n := o.Get(key); n != nil && n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.Add(n, o.Label(key)+" is empty", "")
	}
	return list
}
