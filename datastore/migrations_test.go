package datastore_test

import (
	"os"
	"path"
	"path/filepath"
	"testing"
)

// TestMigrationsHaveNumbersOfTheirOwn: two with one number, as after two merges
// that each were right, let no server start.
func TestMigrationsHaveNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	numbered := make(map[string]string)
	for _, file := range files {
		number := path.Join(path.Dir(filepath.ToSlash(file)), path.Base(file)[:5])
		if other, ok := numbered[number]; ok {
			t.Errorf("%s and %s have one number", other, file)
		}
		numbered[number] = file
		if data, err := os.ReadFile(file); err != nil || len(data) == 0 {
			t.Errorf("%s is empty: %v", file, err)
		}
	}
}
