package location

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// ofEnvironment is the same in all scopes: two clusters whose arguments agree may have one
// state.
const ofEnvironment = holdfast.StoreOfEnvironment

// Written is a name as the arguments of the backend alone have it.
func Written(name string) string { return holdfast.StateKey(name) }

// Same reports whether two names are of one state as far as the arguments say: no two
// clusters may have both.
func Same(a, b string) bool { return Written(a) == Written(b) }

// Aliases are all names that are the Same as a name.
func Aliases(name string) []string { return []string{Written(name), Written(name) + ofEnvironment} }

// choice is what the environment says of the way to a store where no argument does.
type choice struct{ arguments, variables []string }

// choicesOf follows the same documentation as identityOf. A profile of AWS, and the files
// that have it, may name an endpoint; buckets of AWS are those of one partition.
func choicesOf(kind string) []choice {
	switch kind {
	case "s3":
		return []choice{
			{[]string{"endpoint"}, []string{
				"AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
				"AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "HOME",
			}},
			{[]string{"endpoint", "region"}, regionsOfAWS},
		}
	case "azurerm":
		return []choice{{[]string{"environment", "metadata_host"}, []string{"ARM_ENVIRONMENT", "ARM_METADATA_HOSTNAME", "ARM_METADATA_HOST"}}}
	case "cos":
		return []choice{
			{[]string{"region"}, []string{"TENCENTCLOUD_REGION"}},
			{[]string{"domain"}, []string{"TENCENTCLOUD_DOMAIN"}},
			{[]string{"endpoint"}, []string{"TENCENTCLOUD_ENDPOINT"}},
		}
	case "kubernetes":
		return []choice{
			{[]string{"host"}, []string{"KUBE_HOST"}},
			{[]string{"config_context"}, []string{"KUBE_CTX"}},
			{[]string{"config_context_cluster"}, []string{"KUBE_CTX_CLUSTER"}},
			{[]string{"namespace"}, []string{"KUBE_NAMESPACE"}},
		}
	case "cloud":
		return []choice{{[]string{"hostname"}, []string{"TF_CLOUD_HOSTNAME"}}}
	}
	return nil
}

var regionsOfAWS = []string{"AWS_REGION", "AWS_DEFAULT_REGION"} //nolint:gochecknoglobals // a constant list

// Variables are the names of the environment variables that may lead to another store.
func Variables() []string {
	var names []string
	for _, kind := range []string{"s3", "azurerm", "cos", "kubernetes", "cloud"} {
		for _, c := range choicesOf(kind) {
			names = append(names, c.variables...)
		}
	}
	return names
}

// Leads is what a value of one of Variables says of the store: two that lead to the same
// one are equal. An empty value is as if the variable were not there.
func Leads(variable, value string) string {
	if !slices.Contains(regionsOfAWS, variable) {
		return strings.TrimSuffix(value, "/")
	}
	for _, partition := range []string{"cn-", "us-gov-", "us-iso-", "us-isob-", "us-isof-", "eu-isoe-", "eusc-"} {
		if strings.HasPrefix(value, partition) {
			return partition
		}
	}
	return ""
}

// leftOpen reports whether the arguments do not say what the environment may say otherwise
// in another scope.
func (b Backend) leftOpen() bool {
	varied := func(variable string) bool { return slices.Contains(b.Varied, variable) }
	said := func(argument string) bool { return b.Config[argument] != nil || b.Unread[argument] != "" }
	return slices.ContainsFunc(choicesOf(b.Kind), func(c choice) bool {
		return !slices.ContainsFunc(c.arguments, said) && slices.ContainsFunc(c.variables, varied)
	})
}
