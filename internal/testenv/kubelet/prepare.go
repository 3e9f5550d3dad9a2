//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast/internal/testenv/container"
)

// prepare makes all that a container is started with. Until all is there the Pod says what
// it waits for.
func (w *worker) prepare(ctx context.Context, c *core.Container) (spec container.Spec, err error) {
	err = w.hold(ctx, func() (string, string) {
		folder, ok := w.k.images[c.Image]
		if !ok {
			return "ErrImagePull", fmt.Sprintf("failed to pull and unpack image %q: not found", c.Image)
		}
		spec.Programs = folder
		return "", ""
	})
	if err != nil {
		return spec, err
	}
	volumes := make(map[string]string, len(w.pod.Spec.Volumes))
	for i := range w.pod.Spec.Volumes {
		volume := &w.pod.Spec.Volumes[i]
		dir := filepath.Join(w.dir, "volumes", volume.Name)
		volumes[volume.Name] = dir
		err := w.hold(ctx, func() (string, string) {
			if err := w.fill(ctx, volume, dir); err != nil {
				return "ContainerCreating", fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", volume.Name, err)
			}
			return "", ""
		})
		if err != nil {
			return spec, err
		}
	}
	err = w.hold(ctx, func() (string, string) {
		if spec.Env, err = w.environment(ctx, c); err != nil {
			return "CreateContainerConfigError", err.Error()
		}
		return "", ""
	})
	if err != nil {
		return spec, err
	}
	for _, m := range c.VolumeMounts {
		dir, ok := volumes[m.Name]
		if !ok {
			return spec, fmt.Errorf("volume %q is not there", m.Name)
		}
		spec.Mounts = append(spec.Mounts, container.Mount{From: filepath.Join(dir, m.SubPath), To: m.MountPath, ReadOnly: m.ReadOnly})
	}
	spec.Log, spec.Dir = w.logFile(c.Name), c.WorkingDir
	spec.Args = append(slices.Clone(c.Command), c.Args...)
	for i := range spec.Args {
		spec.Args[i] = expand(spec.Args[i], spec.Env)
	}
	spec.User = w.user(c)
	return spec, nil
}

// user is who a container runs as; zero if nobody says.
func (w *worker) user(c *core.Container) int {
	if s := c.SecurityContext; s != nil && s.RunAsUser != nil {
		return int(*s.RunAsUser)
	}
	if s := w.pod.Spec.SecurityContext; s != nil && s.RunAsUser != nil {
		return int(*s.RunAsUser)
	}
	return 0
}

// environment is that of a container: its own and nothing else.
func (w *worker) environment(ctx context.Context, c *core.Container) ([]string, error) {
	env := []string{"HOSTNAME=" + w.pod.Name}
	for _, e := range c.Env {
		value := expand(e.Value, env)
		if from := e.ValueFrom; from != nil {
			switch {
			case from.FieldRef != nil:
				value = w.field(from.FieldRef.FieldPath)
			case from.SecretKeyRef != nil:
				secret, err := w.k.client.CoreV1().Secrets(w.pod.Namespace).Get(ctx, from.SecretKeyRef.Name, meta.GetOptions{})
				if err != nil {
					return nil, err
				}
				value = string(secret.Data[from.SecretKeyRef.Key])
			default:
				return nil, fmt.Errorf("the stand-in does not know where %s is from", e.Name)
			}
		}
		env = append(env, e.Name+"="+value)
	}
	return env, nil
}

func (w *worker) field(path string) string {
	switch path {
	case "metadata.name":
		return w.pod.Name
	case "metadata.namespace":
		return w.pod.Namespace
	case "metadata.uid":
		return string(w.pod.UID)
	case "spec.nodeName":
		return w.k.node
	default:
		return ""
	}
}

// expand replaces $(NAME) by what the environment has.
func expand(text string, env []string) string {
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		text = strings.ReplaceAll(text, "$("+name+")", value)
	}
	return text
}

// fill makes the folder of a volume.
func (w *worker) fill(ctx context.Context, volume *core.Volume, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	switch {
	case volume.EmptyDir != nil:
		return os.Chmod(dir, 0o777) //nolint:gosec // as a kubelet does
	case volume.Secret != nil:
		secret, err := w.k.client.CoreV1().Secrets(w.pod.Namespace).Get(ctx, volume.Secret.SecretName, meta.GetOptions{})
		if apierrors.IsNotFound(err) && volume.Secret.Optional != nil && *volume.Secret.Optional {
			return nil
		} else if err != nil {
			return err
		}
		return writeFiles(dir, secret.Data, volume.Secret.Items, modeOf(volume.Secret.DefaultMode))
	case volume.ConfigMap != nil:
		return w.fillConfig(ctx, volume.ConfigMap.Name, volume.ConfigMap.Items, modeOf(volume.ConfigMap.DefaultMode), dir)
	case volume.Projected != nil:
		for _, source := range volume.Projected.Sources {
			if err := w.project(ctx, source, modeOf(volume.Projected.DefaultMode), dir); err != nil {
				return err
			}
		}
		return nil
	default:
		return errors.New("the stand-in does not know this kind of volume")
	}
}

func modeOf(mode *int32) fs.FileMode {
	if mode == nil {
		return 0o644
	}
	return fs.FileMode(*mode) //nolint:gosec // a mode
}

func (w *worker) fillConfig(ctx context.Context, name string, items []core.KeyToPath, mode fs.FileMode, dir string) error {
	config, err := w.k.client.CoreV1().ConfigMaps(w.pod.Namespace).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return err
	}
	data := make(map[string][]byte, len(config.Data))
	for key, text := range config.Data {
		data[key] = []byte(text)
	}
	return writeFiles(dir, data, items, mode)
}

func (w *worker) project(ctx context.Context, source core.VolumeProjection, mode fs.FileMode, dir string) error {
	switch {
	case source.ServiceAccountToken != nil:
		t := source.ServiceAccountToken
		request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{
			ExpirationSeconds: t.ExpirationSeconds,
			BoundObjectRef:    &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: w.pod.Name, UID: w.pod.UID},
		}}
		if t.Audience != "" {
			request.Spec.Audiences = []string{t.Audience}
		}
		answer, err := w.k.client.CoreV1().ServiceAccounts(w.pod.Namespace).CreateToken(ctx, w.pod.Spec.ServiceAccountName, request, meta.CreateOptions{})
		if err != nil {
			return err
		}
		return writeFiles(dir, map[string][]byte{t.Path: []byte(answer.Status.Token)}, nil, mode)
	case source.ConfigMap != nil:
		return w.fillConfig(ctx, source.ConfigMap.Name, source.ConfigMap.Items, mode, dir)
	case source.DownwardAPI != nil:
		for _, item := range source.DownwardAPI.Items {
			if err := writeFiles(dir, map[string][]byte{item.Path: []byte(w.field(item.FieldRef.FieldPath))}, nil, mode); err != nil {
				return err
			}
		}
		return nil
	default:
		return errors.New("the stand-in does not know this source of a projected volume")
	}
}

func writeFiles(dir string, data map[string][]byte, items []core.KeyToPath, mode fs.FileMode) error {
	if len(items) == 0 {
		for key := range data {
			items = append(items, core.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		content, ok := data[item.Key]
		if !ok {
			return fmt.Errorf("references non-existent key: %s", item.Key)
		}
		path := filepath.Join(dir, filepath.FromSlash(item.Path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, mode)); err != nil {
			return err
		}
	}
	return nil
}
