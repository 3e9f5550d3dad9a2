package runner_test

import (
	"archive/zip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// writeFakePlan writes the plan file of a fake engine, as the engine would, for the
// root module in the working folder, with the environment's values of variables.
func writeFakePlan(out, tool string, destroy bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	archive := zip.NewWriter(file)
	put := func(name string, data []byte) {
		w, createErr := archive.Create(name)
		if createErr == nil {
			_, createErr = w.Write(data)
		}
		err = cmpError(err, createErr)
	}
	put("tfstate", fakeState())
	put("tfstate-prev", []byte(`{"version": 4, "serial": 0, "lineage": "", "outputs": {}, "resources": []}`))
	var known struct{ Modules []struct{ Key, Dir string } }
	if data, readErr := os.ReadFile(filepath.Join(".terraform", "modules", "modules.json")); readErr == nil {
		err = cmpError(err, json.Unmarshal(data, &known))
	}
	if len(known.Modules) == 0 {
		known.Modules = append(known.Modules, struct{ Key, Dir string }{"", "."})
	}
	for _, m := range known.Modules {
		names, _ := filepath.Glob(filepath.Join(m.Dir, "*.t*"))
		for i := range names {
			names[i] = filepath.Base(names[i])
		}
		for _, name := range names {
			if data, readErr := os.ReadFile(filepath.Join(m.Dir, name)); readErr == nil && modulecode.IsFile(name) && modulecode.UsedBy(tool, name, names) {
				put("tfconfig/m-"+m.Key+"/"+path.Base(name), data)
			}
		}
	}
	list, _ := json.Marshal(known.Modules)
	put("tfconfig/modules.json", list)
	lock, _ := os.ReadFile(".terraform.lock.hcl")
	put(".terraform.lock.hcl", lock)
	plan, planErr := fakePlan(root, tool, destroy)
	put("tfplan", plan)
	return cmpError(cmpError(err, planErr), cmpError(archive.Close(), file.Close()))
}

// fakeState is the state that the fake engine plans against: that of the state
// endpoint, if it has one; the file "prior" in the root module goes before.
func fakeState() []byte {
	none := []byte(`{"version": 4, "serial": 0, "lineage": "", "outputs": {}, "resources": []}`)
	if state, err := os.ReadFile("prior"); err == nil {
		return state
	}
	address := os.Getenv("TF_HTTP_ADDRESS")
	if !strings.HasPrefix(address, "http://127.") {
		return none
	}
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return none
	}
	req.SetBasicAuth(os.Getenv("TF_HTTP_USERNAME"), os.Getenv("TF_HTTP_PASSWORD"))
	res, err := ownclient.Client.Do(req)
	if err != nil {
		return none
	}
	defer res.Body.Close()
	if state, err := io.ReadAll(res.Body); err == nil && len(state) > 0 && res.StatusCode == http.StatusOK {
		return state
	}
	return none
}

func cmpError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func fakePlan(root, tool string, destroy bool) ([]byte, error) {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	field := func(to []byte, number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), content)
	}
	number := func(to []byte, number protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.VarintType), n)
	}
	made := number(nil, 1, 3)
	if destroy {
		made = number(made, 17, 1)
	}
	given, err := modulecode.Variables{Dir: root, Engine: tool, Module: modulecode.Read(context.Background(), root, root, tool)}.Given(env)
	if err != nil {
		return nil, err
	}
	for name, v := range given {
		if len(v.Values) == 0 || !v.Declared || v.Ephemeral {
			continue
		}
		value, err := msgpack.Marshal(v.Values[0], cty.DynamicPseudoType)
		if err != nil {
			return nil, err
		}
		made = field(made, 2, field(field(nil, 1, []byte(name)), 2, field(nil, 1, value)))
	}
	kind, config := "local", json.RawMessage(`{"path":null,"workspace_dir":null}`)
	var stored struct {
		Backend struct {
			Type   string
			Config json.RawMessage
		}
	}
	if data, err := os.ReadFile(filepath.Join(".terraform", "terraform.tfstate")); err == nil && json.Unmarshal(data, &stored) == nil && stored.Backend.Type != "" {
		kind, config = stored.Backend.Type, stored.Backend.Config
	}
	implied, err := ctyjson.ImpliedType(config)
	if err != nil {
		return nil, err
	}
	value, err := ctyjson.Unmarshal(config, implied)
	if err != nil {
		return nil, err
	}
	encoded, err := msgpack.Marshal(value, implied)
	if err != nil {
		return nil, err
	}
	return field(made, 13, field(field(field(nil, 1, []byte(kind)), 2, field(nil, 1, encoded)), 3, []byte("default"))), nil
}
