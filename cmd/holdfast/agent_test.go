package main

import (
	"os"
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
