package holdfast

// HTTPBackendCredentials are the variables in which an engine's http backend finds
// its credentials. They can be bound to a project and environment whose clusters
// have such a backend of their own; with Holdfast's own backend they are set by
// Holdfast.
func HTTPBackendCredentials() []string {
	return []string{
		"TF_HTTP_USERNAME", "TF_HTTP_PASSWORD",
		"TF_HTTP_CLIENT_CA_CERTIFICATE_PEM", "TF_HTTP_CLIENT_CERTIFICATE_PEM", "TF_HTTP_CLIENT_PRIVATE_KEY_PEM",
	}
}
