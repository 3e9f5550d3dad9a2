package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"testing"

	"gopkg.in/yaml.v3"
)

// TestAgentInAPod: the manifest starts an agent as the command wants it, with a secret
// that is not everybody's.
func TestAgentInAPod(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/kubernetes/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct{ Args []string }
					Volumes    []struct {
						Secret struct {
							SecretName  string `yaml:"secretName"`
							DefaultMode uint32 `yaml:"defaultMode"`
						}
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	pod := manifest.Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.Containers[0].Args) == 0 || pod.Containers[0].Args[0] != "agent" {
		t.Fatalf("containers: %+v, want one agent", pod.Containers)
	}
	c := newAgentCommand(&app{})
	if err := c.ParseFlags(pod.Containers[0].Args[1:]); err != nil {
		t.Error(err)
	}
	if err := c.ValidateRequiredFlags(); err != nil {
		t.Error(err)
	}
	private := 0
	for _, v := range pod.Volumes {
		if v.Secret.SecretName != "" && v.Secret.DefaultMode == 0o400 {
			private++
		}
	}
	if private != 1 {
		t.Errorf("volumes: %+v, want one secret of mode 0400", pod.Volumes)
	}
	if args := pod.Containers[0].Args; !slices.Contains(args, "--token-file=/etc/holdfast/token") {
		t.Errorf("arguments: %q", args)
	}
}

// object is a document of a manifest.
type object struct {
	Kind  string
	Rules []map[string]any
	Spec  struct {
		Template struct {
			Spec struct {
				Containers []struct{ Args []string }
			}
		}
	}
}

func objectsOf(t *testing.T, file string) (list []object) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kubernetes/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o object
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return list
		case err != nil:
			t.Fatal(err)
		}
		list = append(list, o)
	}
}

// TestLauncherInAPod: the manifest starts an agent that launches as the command wants it, with the
// Role that a server has that launches itself, and no other.
func TestLauncherInAPod(t *testing.T) {
	t.Parallel()
	roles := objectsOf(t, "runner-role.yaml")
	found := map[string]int{}
	for _, o := range objectsOf(t, "kubernetes-agent.yaml") {
		found[o.Kind]++
		switch o.Kind {
		case "Role":
			if !reflect.DeepEqual(o.Rules, roles[0].Rules) {
				t.Errorf("its rules are %v, want %v", o.Rules, roles[0].Rules)
			}
		case "Deployment":
			args := o.Spec.Template.Spec.Containers[0].Args
			if !slices.Equal(args[:2], []string{"agent", "launch"}) {
				t.Fatalf("arguments: %q", args)
			}
			c := newAgentLaunchCommand(&app{})
			if err := errors.Join(c.ParseFlags(args[2:]), c.ValidateRequiredFlags()); err != nil {
				t.Error(err)
			}
		}
	}
	if found["Role"] != 1 || found["Deployment"] != 1 || found["ClusterRole"]+found["ClusterRoleBinding"] > 0 {
		t.Errorf("there are %v", found)
	}
}
