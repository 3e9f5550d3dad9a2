package docs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
)

// TestSettingsExist: every setting that a page, an error or a file of deploy/ calls one of
// holdfast.yaml can be set there.
func TestSettingsExist(t *testing.T) {
	t.Parallel()
	files := map[string]string{"../Dockerfile": read(t, "../Dockerfile")}
	for _, page := range pages(t) {
		files[page.path] = page.text
	}
	for _, pattern := range []string{"../deploy/*/*", "../runner/*/*.go", "../cmd/holdfast/*.go", "../cmd/holdfast/serve/*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				continue
			}
			files[path] = read(t, path)
		}
	}
	named := regexp.MustCompile("([a-zA-Z]+(?:\\.[a-zA-Z]+)+)`?(?: and `?([a-zA-Z]+(?:\\.[a-zA-Z]+)+)`?)? in `?holdfast\\.yaml")
	found := 0
	for path, text := range files {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			for _, key := range m[1:] {
				if key == "" {
					continue
				}
				found++
				if !isSetting(reflect.TypeFor[config.Config](), key) {
					t.Errorf("%s names %s of holdfast.yaml, which does not exist", path, key)
				}
			}
		}
	}
	if found < 6 {
		t.Errorf("%d settings were found, fewer than there are", found)
	}
}

// isSetting reports whether a path of keys leads to a field of a configuration.
func isSetting(of reflect.Type, path string) bool {
	key, rest, more := strings.Cut(path, ".")
	for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return false
	}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name == key {
			return !more || isSetting(field.Type, rest)
		}
	}
	return false
}
