package config_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

// TestVariablesOfClusters: who gives a variable's value here is told how to refer to
// it from the cluster.
func TestVariablesOfClusters(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("holdfast.yaml", "/etc", []byte("credentials:\n  - secrets: {TF_VAR_db_password: {env: X}}\n"))
	if err == nil || !strings.Contains(err.Error(), "such as DB_PASSWORD, and write db_password: {secret: {env: DB_PASSWORD}} under spec.variables") {
		t.Errorf("got %v", err)
	}
}
